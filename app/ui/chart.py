"""Draws a figure on a page, with a button that saves it as a picture."""

import base64
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
import streamlit as st

from app.figures.lines.ends import with_legend_below
from app.figures.theme import Figure
from app.jobs import cached
from app.state.session import SharedOptions

NARROW = "chart.narrow"
"""Session key of a bool: whether the visitor's screen is too narrow for names next to lines."""


def choose_format() -> None:
    """Draw the choice of the picture format, which applies to all pages; a page shows it once, next to its figures."""
    SharedOptions.picture.draw()


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
    cached.page_lock().give_way()
    # app/page_script/charts/saving.js reads the file's name from the layout.
    layout = figure["layout"]
    figure = {
        **figure,
        "layout": {**layout, "meta": {**layout.get("meta", {}), "file": f"{name}.{SharedOptions.picture.value}"}},
    }
    if is_narrow():
        figure = with_legend_below(figure)
    st.plotly_chart(
        RawFigure(figure),
        key=key,
        # With a fixed height, the page does not move while the browser loads the code that draws charts.
        height=round(figure["layout"]["height"]),
        config={"displaylogo": False, "displayModeBar": True, "modeBarButtons": [["toImage"]]},
        alt=alt,
    )


class RawFigure(go.Figure):
    """A figure that is sent to the browser unchanged, with Streamlit's template.

    Streamlit only calls ``to_dict`` on a plotly figure. It would convert a dict to a figure and check each property.

    Args:
        figure: figure to draw; it is not modified.
    """

    def __init__(self, figure: Figure) -> None:
        self._made = figure

    def to_dict(self) -> Figure:
        """Return the figure with its arrays in the encoding of plotly.js."""
        layout = {"template": _template(), **self._made["layout"]}
        return {"data": [], **{name: _encoded(part) for name, part in self._made.items()}, "layout": layout}


@cache
def _template() -> dict[str, Any]:
    template: dict[str, Any] = plotly.io.templates[plotly.io.templates.default].to_plotly_json()
    return template


def _encoded(part: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, dict):
        return {name: _encoded(value) for name, value in part.items()}
    if isinstance(part, list) and part and isinstance(part[0], dict):
        return [_encoded(value) for value in part]
    if not isinstance(part, np.ndarray):
        return part
    if part.dtype.kind != "f" or not part.size:
        return part.tolist()
    # Arrays are sent in base64, because JSON digits take three times the space and time.
    packed = {"dtype": f"f{part.itemsize}", "bdata": base64.b64encode(np.ascontiguousarray(part).data).decode()}
    return packed if part.ndim == 1 else {**packed, "shape": ", ".join(map(str, part.shape))}
