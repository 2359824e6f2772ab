"""The state of a browser tab with a Streamlit app: elements on screen, widget values, and cached messages.

It follows the front end of Streamlit 1.67 without drawing: it reads messages and creates the next request. An element
that a run no longer draws is deleted with its value. Values that the server sets replace those of widgets. A large
message that the server sends only as a hash is replaced by the cached message.
"""

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Block_pb2 import Block
from streamlit.proto.ButtonGroup_pb2 import ButtonGroup
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NumberInput_pb2 import NumberInput
from streamlit.proto.Slider_pb2 import Slider
from streamlit.proto.WidgetStates_pb2 import WidgetState

from app.ui.lazy import to_css_name

CHOICES = ("selectbox", "radio")
LISTS = ("multiselect", "button_group")
TEXTS = ("text_input", "text_area")
OPENED = {"popover": "open", "expandable": "expanded"}
"""Containers that report to the server whether they are open, and the field of their message for it."""
KNOBS = ("slider", "number_input", "checkbox", *CHOICES, *LISTS, *OPENED)
"""Widgets that a visitor changes; containers only if opening them causes a rerun."""
FORM = "form"
"""A container that opens without a request; the page's own script reports which one was opened."""
SCRIPT = "page_script.mount"
"""The key of the page's own script."""
CHIP = "variants.chip."
"""The key prefix of the buttons that open a variant's settings."""
INPUT_KEYS = ("input", "picture.input", "model", "grid")
"""The keys of the widgets that choose another kind of input, another model or a larger image. Visitors do not change
these: some of their choices start a long run, such as the training of a model."""

Path = tuple[int, ...]


class Widget(NamedTuple):
    """A widget as the server describes it.

    Attributes:
        kind: its type: the name of the field with its message in Streamlit's ``Element`` or ``Block``.
        id: its identifier in requests.
        proto: its message.
    """

    kind: str
    id: str
    proto: Any

    @property
    def knob(self) -> bool:
        """True if changing it causes a rerun."""
        proto, free = self.proto, not getattr(self.proto, "disabled", False) and not getattr(self.proto, "form_id", "")
        if self.kind in (FORM, "button"):
            return free and (self.kind == FORM or self.key.startswith(CHIP))
        return self.kind in KNOBS and free and self.key not in INPUT_KEYS and not getattr(proto, "ignore_rerun", False)

    @property
    def key(self) -> str:
        """The key that the app gave the widget, which follows the hash in the identifier."""
        return self.id.split("-", 2)[-1]

    @property
    def field(self) -> str:
        """The field of a request that holds its value."""
        if self.kind == "slider":
            return "string_array_value" if self.proto.type == Slider.SELECT_SLIDER else "double_array_value"
        if self.kind == "number_input":
            return "int_value" if self.proto.data_type == NumberInput.INT else "double_value"
        if self.kind in LISTS:
            return "string_array_value"
        return "string_value" if self.kind in (*CHOICES, *TEXTS) else "bool_value"

    @property
    def options(self) -> list[str]:
        """The options to choose from."""
        if self.kind == "button_group":
            return [f"{o.content_icon} {o.content}".strip() for o in self.proto.options]
        return list(self.proto.options)

    @property
    def default(self) -> Any:  # noqa: ANN401 - of its kind
        """The value before any change; None for none."""
        proto = self.proto
        if self.kind in OPENED:
            return getattr(proto, OPENED[self.kind])
        if self.kind in LISTS or (self.kind == "slider" and proto.type == Slider.SELECT_SLIDER):
            options = self.options
            return [options[int(place)] for place in proto.default]
        if self.kind == "slider":
            return list(proto.default)
        if self.kind != "checkbox" and not proto.HasField("default"):
            return None
        return self.options[proto.default] if self.kind in CHOICES else proto.default

    @property
    def server_value(self) -> Any:  # noqa: ANN401 - of its kind
        """The value that the server sets with this message; None for none."""
        proto = self.proto
        if self.kind in CHOICES:
            return proto.raw_value if proto.HasField("raw_value") else None
        if self.kind in LISTS:
            return list(proto.raw_values)
        if self.kind == "slider":
            return list(proto.raw_value if proto.type == Slider.SELECT_SLIDER else proto.value)
        return proto.value if self.kind == "checkbox" or proto.HasField("value") else None

    def random_value(self, value: Any, rng: random.Random) -> Any:  # noqa: ANN401 - of its kind
        """Return another possible value, or None if there is no other."""
        proto = self.proto
        if self.kind == "checkbox" or self.kind in OPENED:
            return not value
        if self.kind in CHOICES:
            return _other(self.options, value, rng)
        if self.kind == "number_input":
            neighbours = [(value or 0) + step for step in (proto.step, -proto.step)]
            allowed = [
                v for v in neighbours if not (proto.has_min and v < proto.min) and not (proto.has_max and v > proto.max)
            ]
            return _other(allowed, value, rng)
        if self.kind == "slider":
            if proto.type == Slider.SELECT_SLIDER:
                stops: Sequence[Any] = self.options
            else:
                stops = [proto.min + i * proto.step for i in range(round((proto.max - proto.min) / proto.step) + 1)]
            end = rng.randrange(len(value))
            place = _other(range(len(stops)), _nearest(stops, value[end]), rng)
            if place is None:
                return None
            both = [place if i == end else _nearest(stops, each) for i, each in enumerate(value)]
            return [stops[i] for i in sorted(both)]
        if self.kind == "button_group" and proto.click_mode == ButtonGroup.SINGLE_SELECT:
            other = _other(self.options, value[0] if value else None, rng)
            return None if other is None else [other]
        if not self.options:
            return None
        pressed = rng.choice(self.options)
        if pressed not in value and self.kind == "multiselect" and 0 < proto.max_selections <= len(value):
            return value[1:]
        return [o for o in self.options if (o in value) != (o == pressed)]


def _other(options: Sequence[Any], value: object, rng: random.Random) -> Any:  # noqa: ANN401 - one of the options
    others = [option for option in options if option != value]
    return rng.choice(others) if others else None


def _nearest(stops: Sequence[Any], value: Any) -> int:  # noqa: ANN401 - one of the stops
    if value in stops:
        return stops.index(value)
    return 0 if isinstance(value, str) else min(range(len(stops)), key=lambda i: abs(stops[i] - value))


class Node(NamedTuple):
    """The content of a position on the page.

    Attributes:
        widget: the widget there, if any.
        popover: whether it is a container that hides its content until it is opened.
        run: the run that drew it.
        fragment: the fragment that drew it; empty for the page itself.
        script: the page that drew it, or the main script.
    """

    widget: Widget | None
    popover: bool
    run: str
    fragment: str
    script: str


class Cached(NamedTuple):
    """A cached message, reduced to what this client needs."""

    widget: Widget | None
    fragment: str
    run: int


class Finished(NamedTuple):
    """The end of a run of some ``fragments``; if empty, of the whole page."""

    fragments: tuple[str, ...]


class Screen:
    """The state of one browser tab.

    Attributes:
        url: the current address without its query.
        query: the query of the address.
        nodes: the content of the page, by delta path.
        values: the widgets' values by id, each with its field in a request.
        pages: the pages' hashes by path.
        page: the hash of the current page.
        session: the server's name for the session.
        timers: seconds between automatic reruns, by fragment.
        errors: exceptions and refusals that were shown, one line each.
    """

    def __init__(self, url: str, query: str = "") -> None:
        self.url, self.query = url, query
        self.nodes: dict[Path, Node] = {}
        self.values: dict[str, tuple[str, Any]] = {}
        self.pages: dict[str, str] = {}
        self.page = self.session = ""
        self.timers: dict[str, float] = {}
        self.errors: list[str] = []
        self._cached: dict[str, Cached] = {}
        self._sent: set[str] = set()
        self._run, self._runs, self._oldest, self._main = "", 0, 2, ""
        self._form = ""

    # -- messages in

    def read(self, data: bytes) -> Finished | None:
        """Process a message, and return the end of a run if the message is one."""
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "delta":
            self._draw(message)
        elif kind == "ref_hash":
            cached = self._cached.get(message.ref_hash)
            if cached is None:
                self.errors.append("a message was named by a hash that is not cached")
            else:
                # The browser evicts messages that were not used for some runs, so the run of the last use is stored.
                self._cached[message.ref_hash] = cached._replace(run=self._runs)
                self._place(message, cached.widget, cached.fragment)
        elif kind == "new_session":
            self._begin(message)
        elif kind == "navigation":
            self.page = message.navigation.page_script_hash
            self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
            current = next(page for page in message.navigation.app_pages if page.page_script_hash == self.page)
            origin = urlsplit(self.url)
            self.url = f"{origin.scheme}://{origin.netloc}/{'' if current.is_default else current.url_pathname}"
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self.timers[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self.timers.pop(fragment, None)
        elif kind in ("page_not_found", "session_event"):
            self.errors.append(kind)
        elif kind == "script_finished":
            return self._end(message)
        return None

    def _draw(self, message: ForwardMsg) -> None:
        delta = message.delta
        kind = delta.WhichOneof("type")
        if kind == "new_transient":  # a spinner, which is drawn over the existing content and does not replace it
            return
        widget = _widget(delta.new_element if kind == "new_element" else delta.add_block)
        if widget and widget.kind == "exception":
            self.errors.append(f"{widget.proto.type}: {widget.proto.message}"[:300])
        if message.metadata.cacheable:
            known = self._cached.get(message.hash, Cached(widget, delta.fragment_id, self._runs))
            self._cached[message.hash] = known._replace(run=self._runs)
        self._place(message, widget, delta.fragment_id)

    def _place(self, message: ForwardMsg, widget: Widget | None, fragment: str) -> None:
        metadata = message.metadata
        popover = message.delta.add_block.WhichOneof("type") == "popover"
        path, script = tuple(metadata.delta_path), metadata.active_script_hash
        self.nodes[path] = Node(widget, popover, self._run, fragment, script)
        if widget is None or widget.kind not in (*KNOBS, *TEXTS):
            return
        if getattr(widget.proto, "set_value", False):
            self.values[widget.id] = widget.field, widget.server_value
        elif widget.id not in self.values or (widget.kind in OPENED and widget.proto.HasField(OPENED[widget.kind])):
            self.values[widget.id] = widget.field, widget.default

    def _begin(self, message: ForwardMsg) -> None:
        session = message.new_session
        self._run = message.metadata.run.script_run_id
        self.session, self._main = session.initialize.session_id, session.main_script_hash
        self._oldest = session.config.max_cached_message_age
        if not message.metadata.run.fragment_ids:
            self.timers.clear()

    def _end(self, message: ForwardMsg) -> Finished | None:
        status, run = message.script_finished, message.metadata.run
        if status == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return None
        fragments = tuple(run.fragment_ids)
        if status == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
            self.errors.append("the script does not compile")
        elif fragments or run.script_run_id == self._run:
            self.nodes = {
                path: node
                for path, node in self.nodes.items()
                if node.run == run.script_run_id or (fragments and node.fragment not in fragments)
            }
            shown = {node.widget.id for node in self.nodes.values() if node.widget}
            self.values = {id: value for id, value in self.values.items() if id in shown}
            self._sent &= shown
            self._send(path for path in self.nodes if not any(map(self._closed, self._popovers(path))))
        self._runs += 1
        self._cached = {
            hash: each
            for hash, each in self._cached.items()
            if self._runs - each.run <= self._oldest or (fragments and each.fragment not in fragments)
        }
        return Finished(fragments)

    def _popovers(self, path: Path) -> list[Path]:
        """Return the popovers that contain a position."""
        return [path[:i] for i in range(1, len(path)) if (node := self.nodes.get(path[:i])) and node.popover]

    def _closed(self, popover: Path) -> bool:
        widget = self.nodes[popover].widget
        if widget is None:
            return True
        if widget.kind == FORM:
            return widget.id != self._form
        return not self.values[widget.id][1]

    def _send(self, paths: Iterable[Path]) -> None:
        """Include these widgets in all later requests: a browser sends the values of widgets that it has shown once."""
        self._sent |= {self.nodes[path].widget.id for path in paths if self.nodes[path].widget}

    # -- requests out

    def knobs(self) -> list[tuple[Widget, str]]:
        """Return the widgets that can be changed, in the page's order, each with the fragment that then reruns."""
        return [(self.nodes[path].widget, self.nodes[path].fragment) for path in self._places()]

    def _places(self) -> list[Path]:
        return [
            path
            for path, node in sorted(self.nodes.items())
            if node.widget and node.widget.knob and (node.widget.id in self.values or self._opens(node.widget))
        ]

    def _opens(self, widget: Widget) -> bool:
        """Return whether a widget opens something that is closed."""
        form = widget.kind == FORM and widget.id != self._form and self._script() is not None
        return form or widget.kind == "button"

    def _script(self) -> Node | None:
        """Return the page's own script, which reports opened forms to the server."""
        return next((node for node in self.nodes.values() if node.widget and node.widget.key == SCRIPT), None)

    def move(self, rng: random.Random) -> tuple[BackMsg, str] | None:
        """Change a random slider, choice or switch, or open a container.

        Returns:
            The request and its fragment; None if the page has nothing to change.
        """
        for path in rng.sample(known := self._places(), len(known)):
            widget = self.nodes[path].widget
            if self._opens(widget):
                return self.change(path)
            new_value = widget.random_value(self.values[widget.id][1], rng)
            if new_value is not None:
                return self.change(path, (widget.field, new_value))
        return None

    def change(self, path: Path, value: tuple[str, Any] | None = None) -> tuple[BackMsg, str]:
        """Set a widget's value, given with its field in a request, or press a button, or open a form.

        Returns:
            The request and its fragment.
        """
        widget, fragment = self.nodes[path].widget, self.nodes[path].fragment
        # If the visitor opens a form, the page's script reports it to the server, wherever on the page the form is.
        if widget.kind == FORM and (script := self._script()):
            self._form, fragment = widget.id, script.fragment
            self.values[script.widget.id] = "json_value", json.dumps({"form": to_css_name(widget.key)})
            self._sent.add(script.widget.id)
        elif value is not None:
            self.values[widget.id] = value
            popovers = set(self._popovers(path))
            self._send(each for each in self.nodes if popovers.intersection(self._popovers(each)) or each == path)
        request = self.rerun(fragment)
        if widget.kind == "button":
            request.rerun_script.widget_states.widgets.add(id=widget.id, trigger_value=True)
        return request, fragment

    def rerun(self, fragment: str = "", *, automatic: bool = False) -> BackMsg:
        """Return a request for a rerun.

        Args:
            fragment: the fragment to rerun; empty for the whole page.
            automatic: whether the browser requests it by itself.
        """
        request = self._request(self._sent)
        request.page_script_hash, request.fragment_id, request.is_auto_rerun = self.page, fragment, automatic
        if not self.page:
            request.page_name = urlsplit(self.url).path.strip("/")
        return BackMsg(rerun_script=request)

    def change_page(self, path: str, query: str = "") -> BackMsg:
        """Return a request for another page, like its entry in the menu or a link with a query.

        Raises:
            KeyError: if the app has no page with this path.
        """
        self.query = query
        self.timers.clear()
        own = {node.widget.id for node in self.nodes.values() if node.widget and node.script == self._main}
        request = self._request(own & self._sent)
        request.page_script_hash = self.pages[path]
        return BackMsg(rerun_script=request)

    def _request(self, ids: set[str]) -> ClientState:
        request = ClientState(query_string=self.query, cached_message_hashes=self._cached)
        context = request.context_info
        context.timezone, context.timezone_offset, context.locale = "Europe/Berlin", -60, "en-GB"
        context.url = f"{self.url}?{self.query}" if self.query else self.url
        context.is_embedded, context.color_scheme = False, "light"
        for id, (field, value) in self.values.items():
            if id in ids:
                request.widget_states.widgets.append(widget_state(id, field, value))
        return request


def _widget(drawn: Element | Block) -> Widget | None:
    """Return the widget of an element or a block, or None if it has no value."""
    kind = drawn.WhichOneof("type")
    if kind == "popover" and not drawn.popover.id and drawn.id:
        return Widget(FORM, drawn.id, drawn.popover)
    if kind in (*KNOBS, *TEXTS, "button", "bidi_component", "exception"):
        proto = getattr(drawn, kind)
        return Widget(kind, getattr(proto, "id", ""), proto) if kind == "exception" or proto.id else None
    return None


def widget_state(id: str, field: str, value: Any) -> WidgetState:  # noqa: ANN401 - of the widget's kind
    """Return a widget's value in the form of a request."""
    state = WidgetState(id=id)
    if field.endswith("array_value"):
        array = getattr(state, field)
        array.SetInParent()
        array.data.extend(value)
    elif value is not None:
        setattr(state, field, int(value) if field == "int_value" else value)
    return state
