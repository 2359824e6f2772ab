"""What a browser knows of a Streamlit app: the elements on screen, the widgets' values, the cached messages.

It follows the front end of streamlit 1.67 without drawing anything: messages in, the next request out. An element that
a run no longer draws is forgotten with its value, a value that the server sets is taken over, and a large message that
the server names by its hash alone is the one that came before.
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

from app.ui.lazy import in_markup

CHOICES = ("selectbox", "radio")
LISTS = ("multiselect", "button_group")
TEXTS = ("text_input", "text_area")
OPENED = {"popover": "open", "expandable": "expanded"}
"""Containers that tell the server whether they are open, and where their message says so."""
KNOBS = ("slider", "number_input", "checkbox", *CHOICES, *LISTS, *OPENED)
"""What a visitor moves; a container only where opening it asks the server."""
FORM = "form"
"""A container that opens without asking the server: the page's own script tells which was opened."""
SCRIPT = "page_script.mount"
"""That script's key."""
CHIP = "variants.chip."
"""How the keys of those buttons begin which open the settings of a variant."""

Path = tuple[int, ...]


class Widget(NamedTuple):
    """A widget as the server describes it.

    Attributes:
        kind: its message's name in an element or a block.
        id: in requests.
        proto: its message.
    """

    kind: str
    id: str
    proto: Any

    @property
    def knob(self) -> bool:
        """Whether to move it is to ask the server for a run."""
        proto, free = self.proto, not getattr(self.proto, "disabled", False) and not getattr(self.proto, "form_id", "")
        if self.kind in (FORM, "button"):
            return free and (self.kind == FORM or self.key.startswith(CHIP))
        return self.kind in KNOBS and free and not getattr(proto, "ignore_rerun", False)

    @property
    def key(self) -> str:
        """The name that the app has given it; what follows the hash in its id."""
        return self.id.split("-", 2)[-1]

    @property
    def field(self) -> str:
        """Where its value goes in a request."""
        if self.kind == "slider":
            return "string_array_value" if self.proto.type == Slider.SELECT_SLIDER else "double_array_value"
        if self.kind == "number_input":
            return "int_value" if self.proto.data_type == NumberInput.INT else "double_value"
        if self.kind in LISTS:
            return "string_array_value"
        return "string_value" if self.kind in (*CHOICES, *TEXTS) else "bool_value"

    @property
    def options(self) -> list[str]:
        """What can be chosen."""
        if self.kind == "button_group":
            return [f"{o.content_icon} {o.content}".strip() for o in self.proto.options]
        return list(self.proto.options)

    @property
    def default(self) -> Any:  # noqa: ANN401 - of its kind
        """Its value as long as nobody has moved it; None for none."""
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
    def told(self) -> Any:  # noqa: ANN401 - of its kind
        """The value that the server sets with this message; None for none."""
        proto = self.proto
        if self.kind in CHOICES:
            return proto.raw_value if proto.HasField("raw_value") else None
        if self.kind in LISTS:
            return list(proto.raw_values)
        if self.kind == "slider":
            return list(proto.raw_value if proto.type == Slider.SELECT_SLIDER else proto.value)
        return proto.value if self.kind == "checkbox" or proto.HasField("value") else None

    def moved(self, value: Any, rng: random.Random) -> Any:  # noqa: ANN401 - of its kind
        """Another value that a visitor may give it; None where there is none."""
        proto = self.proto
        if self.kind == "checkbox" or self.kind in OPENED:
            return not value
        if self.kind in CHOICES:
            return _other(self.options, value, rng)
        if self.kind == "number_input":
            near = [(value or 0) + step for step in (proto.step, -proto.step)]
            kept = [v for v in near if not (proto.has_min and v < proto.min) and not (proto.has_max and v > proto.max)]
            return _other(kept, value, rng)
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
    """What stands at a place of the page.

    Attributes:
        widget: the widget there, if it is one.
        popover: whether it is a container that hides what is in it until it is opened.
        run: the run that drew it.
        fragment: whose part it is; empty for the page's own.
        script: the page that drew it, or the main script.
    """

    widget: Widget | None
    popover: bool
    run: str
    fragment: str
    script: str


class Cached(NamedTuple):
    """A message that the server need not send again, as far as it matters here."""

    widget: Widget | None
    fragment: str
    run: int


class Finished(NamedTuple):
    """The end of a run: of these fragments, or of the whole page where there are none."""

    fragments: tuple[str, ...]


class Screen:
    """One browser tab's state.

    Attributes:
        url: where it is, without a query.
        query: the address's query.
        nodes: what stands on the page, by its delta path.
        values: the widgets' values by id, with the field of a request that takes them.
        pages: the pages' hashes by their path.
        page: the hash of the one shown.
        session: the server's name for it.
        timers: seconds between two runs that the browser asks for by itself, by fragment.
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
        """Take a message; returns what came to its end with it."""
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "delta":
            self._draw(message)
        elif kind == "ref_hash":
            cached = self._cached.get(message.ref_hash)
            if cached is None:
                self.errors.append("a message was named by a hash that is not cached")
            else:
                self._cached[message.ref_hash] = cached._replace(run=self._runs)  # what is asked for again stays
                self._place(message, cached.widget, cached.fragment)
        elif kind == "new_session":
            self._begin(message)
        elif kind == "navigation":
            self.page = message.navigation.page_script_hash
            self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
            here = next(page for page in message.navigation.app_pages if page.page_script_hash == self.page)
            origin = urlsplit(self.url)
            self.url = f"{origin.scheme}://{origin.netloc}/{'' if here.is_default else here.url_pathname}"
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
        what = delta.WhichOneof("type")
        if what == "new_transient":  # a spinner over what stands there
            return
        widget = _widget(delta.new_element if what == "new_element" else delta.add_block)
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
            self.values[widget.id] = widget.field, widget.told
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
        """The popovers around a place."""
        return [path[:i] for i in range(1, len(path)) if (node := self.nodes.get(path[:i])) and node.popover]

    def _closed(self, popover: Path) -> bool:
        widget = self.nodes[popover].widget
        if widget is None:
            return True
        if widget.kind == FORM:
            return widget.id != self._form
        return not self.values[widget.id][1]

    def _send(self, paths: Iterable[Path]) -> None:
        """From now on requests hold the values of what stands there: a browser sends what it has shown once."""
        self._sent |= {self.nodes[path].widget.id for path in paths if self.nodes[path].widget}

    # -- requests out

    def knobs(self) -> list[tuple[Widget, str]]:
        """What can be moved, in the page's order, each with the fragment that runs then."""
        return [(self.nodes[path].widget, self.nodes[path].fragment) for path in self._places()]

    def _places(self) -> list[Path]:
        return [
            path
            for path, node in sorted(self.nodes.items())
            if node.widget and node.widget.knob and (node.widget.id in self.values or self._opens(node.widget))
        ]

    def _opens(self, widget: Widget) -> bool:
        """Whether it opens something, and is closed."""
        form = widget.kind == FORM and widget.id != self._form and self._script() is not None
        return form or widget.kind == "button"

    def _script(self) -> Node | None:
        """The page's own script, which tells the server of forms."""
        return next((node for node in self.nodes.values() if node.widget and node.widget.key == SCRIPT), None)

    def move(self, rng: random.Random) -> tuple[BackMsg, str] | None:
        """Move any slider, choice or switch, or open what may hold some.

        Returns:
            The request and its fragment; None where there is nothing.
        """
        for path in rng.sample(known := self._places(), len(known)):
            widget = self.nodes[path].widget
            if self._opens(widget):
                return self.touch(path)
            moved = widget.moved(self.values[widget.id][1], rng)
            if moved is not None:
                return self.touch(path, (widget.field, moved))
        return None

    def touch(self, path: Path, value: tuple[str, Any] | None = None) -> tuple[BackMsg, str]:
        """Give a widget a value, with the field of a request that takes it, press a button or open a form.

        Returns:
            The request and its fragment.
        """
        widget, fragment = self.nodes[path].widget, self.nodes[path].fragment
        if widget.kind == FORM and (script := self._script()):  # that is the script's to tell, wherever the form stands
            self._form, fragment = widget.id, script.fragment
            self.values[script.widget.id] = "json_value", json.dumps({"form": in_markup(widget.key)})
            self._sent.add(script.widget.id)
        elif value is not None:
            self.values[widget.id] = value
            opened = set(self._popovers(path))
            self._send(each for each in self.nodes if opened.intersection(self._popovers(each)) or each == path)
        request = self.rerun(fragment)
        if widget.kind == "button":
            request.rerun_script.widget_states.widgets.add(id=widget.id, trigger_value=True)
        return request, fragment

    def rerun(self, fragment: str = "", *, automatic: bool = False) -> BackMsg:
        """Ask for a run.

        Args:
            fragment: of this part alone.
            automatic: whether the browser asks by itself.
        """
        request = self._request(self._sent)
        request.page_script_hash, request.fragment_id, request.is_auto_rerun = self.page, fragment, automatic
        if not self.page:
            request.page_name = urlsplit(self.url).path.strip("/")
        return BackMsg(rerun_script=request)

    def change_page(self, path: str, query: str = "") -> BackMsg:
        """Ask for another page, as its entry in the menu or a link with a query does.

        Raises:
            KeyError: if the app has no page of that path.
        """
        self.query = query
        self.timers.clear()
        kept = {node.widget.id for node in self.nodes.values() if node.widget and node.script == self._main}
        request = self._request(kept & self._sent)
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
    """The widget that an element or a block is; None for all that has no value."""
    kind = drawn.WhichOneof("type")
    if kind == "popover" and not drawn.popover.id and drawn.id:
        return Widget(FORM, drawn.id, drawn.popover)
    if kind in (*KNOBS, *TEXTS, "button", "bidi_component", "exception"):
        proto = getattr(drawn, kind)
        return Widget(kind, getattr(proto, "id", ""), proto) if kind == "exception" or proto.id else None
    return None


def widget_state(id: str, field: str, value: Any) -> WidgetState:  # noqa: ANN401 - of the widget's kind
    """A widget's value as a request holds it."""
    state = WidgetState(id=id)
    if field.endswith("array_value"):
        array = getattr(state, field)
        array.SetInParent()
        array.data.extend(value)
    elif value is not None:
        setattr(state, field, int(value) if field == "int_value" else value)
    return state
