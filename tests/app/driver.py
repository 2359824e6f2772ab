"""Any page in Streamlit's own test runner: how it is opened, and how what it shows is read."""

import asyncio
import base64
import html
import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
from plotly.graph_objects import Figure
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.state.common import user_key_from_element_id
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import attention_core as ac
from app.state.controls import Options
from app.state.url import LINK, Link
from app.ui.lazy import OPENED
from app.ui.variant_picker import SETTINGS

# Each page that is opened would read about every installed package anew, in search of components: a tenth of a second.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
# As the app's own settings say, which no page in a test reads: to note every call of Streamlit takes a third of a run.
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
"""What Streamlit's test runner calls the kinds of controls."""


def complete(coroutine):
    """What a coroutine returns; run in a thread of its own, as a browser's test before it may have left a loop here."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def read_number(words):
    """A number as the lab writes it, such as ``−1.4 × 10⁻⁷``, as a float."""
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
    mantissa, _times, power = words.replace("\N{NO-BREAK SPACE}", "").partition("×10")
    return float(f"{mantissa.translate(raised)}e{power.translate(raised) or 0}")


class All:
    """Whatever is asked for is among them."""

    def __contains__(self, name):
        return True


def _before_its_first_run(page, query):
    at = AppTest.from_file(str(MAIN), default_timeout=120)
    at.session_state[OPENED] = at.session_state[SETTINGS] = All()  # whoever reads a page has opened every form on it
    return _aim(at, page, query)


def _aim(at, page, query):
    at._page_hash = calc_hash("" if page == "home" else page)  # as st.Page reckons it from the address
    for name, words in dict(query).items():
        at.query_params[name] = words
    return at


def visit(page, query=()):
    """A page as a visitor finds it who follows a link to it; the address is put right by the next run."""
    return _before_its_first_run(page, query).run()


def open_page(page, query=(), **state):
    """A page in a session that has been elsewhere before and brings this state; a link sets what pages know anew."""
    at = _before_its_first_run(page, query)
    at.session_state[LINK] = Link(None, {})
    for name, field in Options.shared().items():
        at.session_state[name] = field.default
    return set_state(at, **state)


def set_state(at, **state):
    """The page again, with values in its session changed."""
    for name, value in state.items():
        at.session_state[name] = value
    return at.run()


def send(at, **words):
    """The page again as a browser asks for it that says this of some widgets, whether they have such values or not."""
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
    """Another page in the same session."""
    return _aim(at, page, query).run()


def chosen(*keys):
    """Variants as they come."""
    return tuple(ac.get(key) for key in keys)


def spoken(at, *kinds):
    """What a page says in sentences, and in other kinds of elements; unbreakable spaces undone."""
    said = [*at.main.markdown, *(each for kind in kinds for each in at.main.get(kind))]
    return " ".join(each.value for each in said).replace("\N{NO-BREAK SPACE}", " ")


def charts(at):
    """The charts as they are sent, each of which plotly can read."""
    sent = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    for spec in sent:
        Figure(spec)  # it raises where a word is none of plotly's
    return sent


def numbers(values):
    """What a trace holds, which Plotly may have packed, as a list."""
    if not isinstance(values, dict):
        return values
    found = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return (found.reshape([int(x) for x in values["shape"].split(",")]) if "shape" in values else found).tolist()


def traces(at, place=-1):
    """A chart's traces by name, by default the last one's, bands left out."""
    return {trace["name"]: trace for trace in charts(at)[place]["data"] if trace.get("name")}


def curves(at, place=-1):
    """The same as ``(x, y)``."""
    return {name: (numbers(each["x"]), numbers(each["y"])) for name, each in traces(at, place).items()}


def points(at, place=-1):
    """The same as ``{x: y}``, points of one name together."""
    found = {}
    for each in charts(at)[place]["data"]:
        if each.get("name"):
            found.setdefault(each["name"], {}).update(zip(numbers(each["x"]), numbers(each["y"]), strict=True))
    return found


def table(at, place=-1):
    """A table by its first column, by default the last one."""
    found = at.dataframe[place].value
    return found.set_index(found.columns[0])


def bands(at, place=-1):
    """A chart's traces without names."""
    return [trace for trace in charts(at)[place]["data"] if not trace.get("name")]


def message(component):
    """The header and the numbers' bytes of what a board sends to the browser."""
    return unpacked(component.proto.bytes)


def unpacked(sent):
    """The header and the payload of one message."""
    length = int.from_bytes(sent[:4], "little")
    return json.loads(sent[4 : 4 + length]), sent[4 + length :]


def inside(header, payload):
    """The panels that came with their board: what describes each, and its numbers' bytes."""
    ends = itertools.accumulate(header["inside"])
    return [unpacked(payload[end - length : end]) for length, end in zip(header["inside"], ends, strict=True)]


def joined(sent, parts):
    """A board's header with those of its panels, and all their numbers' bytes; parts are messages by any key."""
    header, payload = unpacked(sent)
    sent = [*map(unpacked, parts.values()), *inside(header, payload)]
    known = {panel["digest"]: (panel, payload) for panel, payload in sent}
    panels = [known[digest] for digest in header["parts"]]
    return header | {"panels": [panel for panel, _ in panels]}, b"".join(payload for _, payload in panels)


def matrices(header, payload):
    """A board's matrices, from half floats in the sizes the browser reads them in."""
    for panel in header["panels"]:
        size = panel["rows"] * panel["cols"]
        codes = np.frombuffer(payload[: 2 * size], "<f2").astype(float) * 2.0 ** panel["exponent"]
        yield codes.reshape(panel["rows"], panel["cols"])
        payload = payload[2 * size :]


def board(at, key):
    """A board's header, and its panels by their keys: what describes each, and its matrix."""
    sent = [c.proto for c in at.get("bidi_component") if c.proto.bytes]
    [found] = [proto.bytes for proto in sent if f"-{key}-" in f"{proto.id}-"]
    header, payload = joined(found, {proto.id: proto.bytes for proto in sent if f"-board_part.{key}." in proto.id})
    panels = zip(header["panels"], matrices(header, payload), strict=True)
    return header, {panel["key"]: (panel, matrix) for panel, matrix in panels}


def board_settings(at, key):
    """How a board is set, whether that came with it or apart."""
    for proto in (each.proto for each in at.get("bidi_component")):
        if proto.component_name == "attention_lab_settings":
            told = json.loads(proto.bytes)
            if told.pop("board") == key:
                return told
        elif f"-{key}-" in f"{proto.id}-" and (told := unpacked(proto.bytes)[0].get("told")) is not None:
            return told
    raise KeyError(key)


def links(at):
    """The links to other pages, as Streamlit sends them."""
    return [each.proto for each in at.get("page_link")]


def drawn(at):
    """The controls on a page."""
    for name in ("button_group", *CONTROLS):
        yield from at.get(name)


def moved(control):
    """The control set to something else; None where there is nothing else."""
    if control.type == "button_group":
        other = next((option for option in control.options if option not in control.formatted_values), None)
        return other and control.set_value(other if control._is_single_select else [*control.value, other])
    if control.type in ("selectbox", "select_slider"):
        other = next((o for o in control.options if o != control.format_func(control.value)), None)
        return other and control.set_value(other)
    if control.type in ("toggle", "checkbox"):
        return control.set_value(not control.value)
    return control.set_value(control.min if control.value != control.min else control.max)


def ways(*markdown):
    """Links to other pages inside Markdown: the page, what its address carries, the words."""
    told = re.findall(r'<a class="way" target="_self" href="([^"]*)">:material/\w+: (.*?)</a>', "\n".join(markdown))
    addresses = [(urlsplit(html.unescape(address)), words) for address, words in told]
    return [(address.path, parse_qs(address.query), words) for address, words in addresses]
