"""Any page in Streamlit's own test runner: how it is opened, and how what it shows is read."""

import base64
import json
from pathlib import Path

import numpy as np
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

MAIN = Path(__file__).parents[2] / "app" / "main.py"


def visit(page, query=(), *, timeout=60):
    """A page as a visitor finds it who follows a link to it; the address is put right by the next run."""
    at = AppTest.from_file(str(MAIN), default_timeout=timeout)
    at._page_hash = calc_hash("" if page == "home" else page)  # as st.Page reckons it from the address
    for name, words in dict(query).items():
        at.query_params[name] = words
    return at.run()


def numbers(values):
    """The numbers of a trace, which Plotly may have packed."""
    if isinstance(values, dict):
        found = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).astype(float)
        return found.reshape([int(x) for x in values["shape"].split(",")]) if "shape" in values else found
    return np.array(values, dtype=float)


def message(component):
    """The header and the numbers' bytes of what a board sends to the browser."""
    sent = component.proto.bytes
    length = int.from_bytes(sent[:4], "little")
    return json.loads(sent[4 : 4 + length]), sent[4 + length :]


def matrices(header, payload):
    """The matrices of a board, from half floats in the sizes the browser reads them in."""
    for panel in header["panels"]:
        size = panel["rows"] * panel["cols"]
        codes = np.frombuffer(payload[: 2 * size], "<f2").astype(float) * 2.0 ** panel["exponent"]
        yield codes.reshape(panel["rows"], panel["cols"])
        payload = payload[2 * size :]
