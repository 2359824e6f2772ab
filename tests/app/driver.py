"""Helpers that open any page in Streamlit's AppTest runner and read what the page shows."""

import asyncio
import base64
import difflib
import html
import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
from plotly.graph_objects import Figure
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.state.common import TESTING_KEY, user_key_from_element_id
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import attention_core as ac
from app.state.controls import Options
from app.state.url import LINK, Link
from app.ui.chart import NAME as CHART
from app.ui.lazy import OPEN_FORMS
from app.ui.variant_picker import OPEN_SETTINGS
from app.words.finding import text_above, text_below, to_lines

# Without this cache, each page that a test opens scans all installed packages for components, for a tenth of a second.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
# Usage statistics take a third of a run. The app's own settings turn them off, but AppTest does not read the settings.
config.set_option("browser.gatherUsageStats", False)

MAIN = Path(__file__).parents[2] / "app" / "main.py"
CONTROLS = (
    "selectbox",
    "segmented_control",
    "pills",
    "slider",
    "select_slider",
    "toggle",
    "number_input",
    "text_area",
    "text_input",
    "checkbox",
    "radio",
    "multiselect",
)
"""AppTest's names of the kinds of controls."""


def complete(coroutine):
    """Return the result of a coroutine, run in a new thread: this thread may have a browser test's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def read_number(words):
    """Return a number as the app writes it, such as ``−1.4 × 10⁻⁷``, as a float."""
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
    mantissa, _times, power = words.replace("\N{NO-BREAK SPACE}", "").partition("×10")
    return float(f"{mantissa.translate(raised)}e{power.translate(raised) or 0}")


class All:
    """A set that contains every value."""

    def __contains__(self, name):
        return True


class CheckedPage(AppTest):
    """A page that fails the test if a run shows an exception."""

    def _run(self, *given, **named):
        at = super()._run(*given, **named)
        assert not at.exception, "\n".join(f"{each.message}\n{each.stack_trace}" for each in at.exception)
        return at


def _before_its_first_run(page, query):
    """Return a page that has not run yet, in a new session with this query in its address."""
    at = CheckedPage(MAIN, default_timeout=120)
    at.session_state[OPEN_FORMS] = at.session_state[OPEN_SETTINGS] = All()  # In tests, every form counts as opened.
    return _aim(at, page, query)


def _aim(at, page, query):
    """Set the page and the query that the next run opens, and return ``at``."""
    at._page_hash = calc_hash("" if page == "home" else page)  # Streamlit computes the hash of a page in this way.
    for name, words in dict(query).items():
        at.query_params[name] = words
    return at


def visit(page, query=()):
    """Return a page after its first run in a new session that a link has opened.

    The app writes its own address only in the next run.
    """
    return _before_its_first_run(page, query).run()


def open_page(page, query=(), **state):
    """Return a page in a session with this state that has visited another page; a query resets the page's options."""
    at = _before_its_first_run(page, query)
    at.session_state[LINK] = Link(None, {})
    for name, field in Options.shared().items():
        at.session_state[name] = field.default
    return set_state(at, **state)


def set_state(at, **state):
    """Rerun the page with changed values in the session state and return it."""
    for name, value in state.items():
        at.session_state[name] = value
    return at.run()


def send(at, **words):
    """Rerun the page with these raw widget values from the browser, valid or not, and return it."""
    states = at._tree.get_widget_states()
    known = {user_key_from_element_id(state.id): state for state in states.widgets}
    for key, word in words.items():
        kind = known[key].WhichOneof("value") or "string_value"
        if kind.endswith("array_value"):
            getattr(known[key], kind).data[:] = word
        else:
            setattr(known[key], kind, word)
    return at._run(states)


def go(at, page, query=()):
    """Return another page in the same session."""
    return _aim(at, page, query).run()


def chosen(*keys):
    """Return the variants with these keys, with their default settings."""
    return tuple(ac.get(key) for key in keys)


class PageText(str):
    """The text of a page. A failed ``assert ... in text`` reports its nearest sentence (``tests/conftest.py``)."""

    __slots__ = ()

    def nearest(self, text):
        """Return the sentence of the page that is most similar to a text."""
        sentences = re.split(r"(?<=[.;:!?])\s+|\n+", self)
        return next(iter(difflib.get_close_matches(text, sentences, n=1, cutoff=0)), "")


def assert_says(at, text, *kinds):
    """Check that a page shows a text in its Markdown, or in other kinds of elements."""
    assert text in spoken(at, *kinds)


def spoken(at, *kinds):
    """Return the text of a page: Markdown and other kinds of elements, with spaces for non-breaking spaces."""
    texts = [*at.main.markdown, *(each for kind in kinds for each in at.main.get(kind))]
    return PageText(" ".join(each.value for each in texts).replace("\N{NO-BREAK SPACE}", " "))


def full_text(found):
    """Return the text above a figure, followed by the text below it, for findings as a page's functions return them."""
    lines = to_lines(found)
    return " ".join(filter(None, (text_above(lines), text_below(lines))))


def charts(at):
    """Return the figures of all charts on a page as sent to the browser, after checking that plotly accepts them."""
    sent = [figure(each) for each in at.get("bidi_component") if is_chart(each)]
    for spec in sent:
        Figure(spec)  # This raises an error if an attribute is unknown to plotly.
    return sent


def is_chart(element):
    """Return whether an element is a chart."""
    return element.type == "bidi_component" and element.proto.component_name == CHART


def figure(element):
    """Return the specification of a chart's figure as sent."""
    header, payload = unpacked(element.proto.bytes)
    assert header["alt"], "the chart has a description"
    return json.loads(payload)


def numbers(values):
    """Return the values of a trace as a list, unpacking Plotly's binary encoding."""
    if not isinstance(values, dict):
        return values
    found = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return (found.reshape([int(x) for x in values["shape"].split(",")]) if "shape" in values else found).tolist()


def traces(at, place=-1):
    """Return the named traces of the chart with index ``place`` by name; bands have no name."""
    return {trace["name"]: trace for trace in charts(at)[place]["data"] if trace.get("name")}


def lines_of(at, place=-1):
    """Return the named traces of a chart as ``(x, y)`` by name."""
    return {name: (numbers(each["x"]), numbers(each["y"])) for name, each in traces(at, place).items()}


def points(at, place=-1):
    """Return the named traces of a chart as ``{x: y}`` by name; traces of equal name are merged."""
    found = {}
    for each in charts(at)[place]["data"]:
        if each.get("name"):
            found.setdefault(each["name"], {}).update(zip(numbers(each["x"]), numbers(each["y"]), strict=True))
    return found


def table(at, place=-1):
    """Return a table indexed by its first column; by default the last table."""
    found = at.dataframe[place].value
    return found.set_index(found.columns[0])


def metrics(at):
    """Return the tables of metrics of the Matrices page as texts, with the variants as their common index."""
    shown = pd.concat([table.value for table in at.table])
    return shown.set_index(shown.columns[0]).T


def read_percent(text):
    """Return the share that a percentage on a page shows."""
    return read_number(text.removesuffix("%")) / 100


def bands(at, place=-1):
    """Return the unnamed traces of a chart, which are the bands around its lines."""
    return [trace for trace in charts(at)[place]["data"] if not trace.get("name")]


def message(component):
    """Return the header and the payload of the message that a component of a board sends to the browser."""
    return unpacked(component.proto.bytes)


def unpacked(sent):
    """Return the header and the payload of a message in the format of ``app.board_messages.packing``."""
    length = int.from_bytes(sent[:4], "little")
    return json.loads(sent[4 : 4 + length]), sent[4 + length :]


def inside(header, payload):
    """Return the header and the payload of each panel that is part of its board's message."""
    ends = itertools.accumulate(header["inline_lengths"])
    return [unpacked(payload[end - length : end]) for length, end in zip(header["inline_lengths"], ends, strict=True)]


def joined(sent, parts):
    """Return a board's header with the headers of its panels added, and the payloads of all panels joined.

    Args:
        sent: the board's message.
        parts: the separate messages of large panels, by any key.
    """
    header, payload = unpacked(sent)
    sent = [*map(unpacked, parts.values()), *inside(header, payload)]
    known = {panel["digest"]: (panel, payload) for panel, payload in sent}
    panels = [known[digest] for digest in header["digests"]]
    return header | {"panels": [panel for panel, _ in panels]}, b"".join(payload for _, payload in panels)


def matrices(header, payload):
    """Yield a board's matrices, decoded from half floats as the browser decodes them."""
    for panel in header["panels"]:
        size = panel["rows"] * panel["cols"]
        codes = np.frombuffer(payload[: 2 * size], "<f2").astype(float) * 2.0 ** panel["exponent"]
        yield codes.reshape(panel["rows"], panel["cols"])
        payload = payload[2 * size :]


def board(at, key):
    """Return a board's header, and the header and matrix of each panel by key."""
    sent = [c.proto for c in at.get("bidi_component") if c.proto.bytes]
    [found] = [proto.bytes for proto in sent if f"-{key}-" in f"{proto.id}-"]
    header, payload = joined(found, {proto.id: proto.bytes for proto in sent if f"-board_part.{key}." in proto.id})
    panels = zip(header["panels"], matrices(header, payload), strict=True)
    return header, {panel["key"]: (panel, matrix) for panel, matrix in panels}


def board_settings(at, key):
    """Return the settings of a board, sent with the board or in a separate message."""
    for proto in (each.proto for each in at.get("bidi_component")):
        if proto.component_name == "attention_lab_settings":
            text = json.loads(proto.bytes)
            if text.pop("board") == key:
                return text
        elif f"-{key}-" in f"{proto.id}-" and (text := unpacked(proto.bytes)[0].get("settings")) is not None:
            return text
    raise KeyError(key)


def links(at):
    """Return the protos of the links to other pages."""
    return [each.proto for each in at.get("page_link")]


def drawn(at):
    """Yield the widgets of a page that are among ``CONTROLS``, and its button groups."""
    for name in ("button_group", *CONTROLS):
        yield from at.get(name)


def moved(control):
    """Set a widget to another value and return it; None if it has only one value."""
    if control.type == "button_group":
        other = next((option for option in control.options if option not in control.formatted_values), None)
        if not control._is_single_select:
            return other and control.set_value([*control.value, other])
        control.root.session_state[TESTING_KEY][control.id] = str  # ``other`` is formatted already.
        return other and control.set_value(other)
    if control.type in ("selectbox", "select_slider"):
        other = next((o for o in control.options if o != control.format_func(control.value)), None)
        return other and control.set_value(other)
    if control.type in ("toggle", "checkbox"):
        return control.set_value(not control.value)
    return control.set_value(control.min if control.value != control.min else control.max)


def ways(*markdown):
    """Return the links to other pages in Markdown, as ``(page, query parameters, link text)``."""
    sentence = re.findall(r'<a class="way" target="_self" href="([^"]*)">:material/\w+: (.*?)</a>', "\n".join(markdown))
    addresses = [(urlsplit(html.unescape(address)), words) for address, words in sentence]
    return [(address.path, parse_qs(address.query), words) for address, words in addresses]
