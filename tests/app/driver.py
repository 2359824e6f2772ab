"""Any page in Streamlit's own test runner: how it is opened, and how what it shows is read."""

import base64
import json
from pathlib import Path

import numpy as np
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import attention_core as ac
from app.share import LINK, Link

MAIN = Path(__file__).parents[2] / "app" / "main.py"


def _before_its_first_run(page, query):
    at = AppTest.from_file(str(MAIN), default_timeout=120)
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
    return set_state(at, **state)


def set_state(at, **state):
    """The page again, with values in its session changed."""
    for name, value in state.items():
        at.session_state[name] = value
    return at.run()


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
    """The charts as they are sent."""
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


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
    sent = component.proto.bytes
    length = int.from_bytes(sent[:4], "little")
    return json.loads(sent[4 : 4 + length]), sent[4 + length :]


def matrices(header, payload):
    """A board's matrices, from half floats in the sizes the browser reads them in."""
    for panel in header["panels"]:
        size = panel["rows"] * panel["cols"]
        codes = np.frombuffer(payload[: 2 * size], "<f2").astype(float) * 2.0 ** panel["exponent"]
        yield codes.reshape(panel["rows"], panel["cols"])
        payload = payload[2 * size :]


def board(at, key):
    """A board's header, and its panels by their keys: what describes each, and its matrix."""
    [found] = [c for c in at.get("bidi_component") if f"-{key}-" in f"{c.proto.id}-" and c.proto.bytes]
    header, payload = message(found)
    panels = zip(header["panels"], matrices(header, payload), strict=True)
    return header, {panel["key"]: (panel, matrix) for panel, matrix in panels}


def links(at):
    """The links to other pages, as Streamlit sends them."""
    return [each.proto for each in at.get("page_link")]
