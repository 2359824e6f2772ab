"""A function that draws a plotly figure on a page, with a button that saves the figure as a picture."""

import base64
from functools import cache
from typing import Any

import msgspec
import numpy as np
import streamlit as st

from app.board_messages.packing import encode
from app.figures.lines.line_names import with_legend_below
from app.figures.theme import Figure
from app.jobs import cached
from app.matrix_board.component import RECEIVER
from app.state.session import SharedOptions
from app.words.i18n import _

NARROW = "chart.narrow"
"""Session key of a bool: whether the visitor's screen is too narrow for names next to lines."""
NAME = "attention_lab_chart"
"""Name of the component that receives a figure. ``app/page_script/charts/chart.js`` draws it."""


def is_narrow() -> bool:
    """Return whether the visitor's screen is too narrow for names next to lines."""
    return bool(st.session_state.get(NARROW))


def show(figure: Figure, *, key: str, name: str, alt: str) -> None:
    """Draw a figure.

    Args:
        figure: figure to draw.
        key: key of the element; a growing figure needs a new key for each drawing.
        name: name of the saved file, without extension.
        alt: description of the figure in one sentence, for visitors who cannot see it.
    """
    cached.page_lock().yield_turn()
    if is_narrow():
        figure = with_legend_below(figure)
    header = {
        "kind": "chart",
        "key": key,
        "alt": alt,
        "file": f"{name}.{SharedOptions.picture.value}",
        "save": _("Save the chart as a picture"),
    }
    # With a fixed height, the page does not move while the browser loads the code that draws charts.
    height = round(figure["layout"]["height"])
    _component()(key=key, data=encode(header, to_json(figure)), height=height)


@cache
def _component() -> Any:  # noqa: ANN401 - Streamlit's component function
    return st.components.v2.component(NAME, js=RECEIVER, isolate_styles=False)


def to_json(figure: Figure) -> bytes:
    """Return a figure as the JSON that plotly.js reads, with null for NaN and infinity."""
    return msgspec.json.encode(figure, enc_hook=_encode_array)


def _encode_array(values: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return an array in the encoding of plotly.js, or any other object of numpy as a list or number."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or not values.size:
        return values.tolist()
    # Arrays are sent in base64, because JSON digits take three times the space and time.
    encoded = {"dtype": f"f{values.itemsize}", "bdata": base64.b64encode(np.ascontiguousarray(values).data).decode()}
    return encoded if values.ndim == 1 else {**encoded, "shape": ", ".join(map(str, values.shape))}
