"""A figure on the page, with the button that saves it as a picture."""

import base64
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
import streamlit as st

from app.figures.ends import narrowed
from app.figures.theme import Figure
from app.jobs import cached
from app.state.session import Visit

NARROW = "chart.narrow"
"""Whether the visitor's screen is too narrow for names beside lines, in the session's state."""


def choose_format() -> None:
    """How figures are saved, on every page; a page shows it once, beside its figures."""
    Visit.picture.draw()


def show(figure: Figure, *, key: str, name: str, alt: str) -> None:
    """Draw a figure.

    Args:
        figure: what to draw.
        key: the element's key, another one for each drawing of a figure that grows.
        name: of the saved file, without its ending.
        alt: the figure in one sentence, for those who cannot see it.
    """
    cached.drawing().give_way()
    layout = figure["layout"]  # the file's name is for app/chart_files.js, which writes it
    figure = {
        **figure,
        "layout": {**layout, "meta": {**layout.get("meta", {}), "file": f"{name}.{Visit.picture.value}"}},
    }
    st.plotly_chart(
        Drawn(narrowed(figure) if st.session_state.get(NARROW) else figure),
        key=key,
        config={"displaylogo": False, "displayModeBar": True, "modeBarButtons": [["toImage"]]},
        alt=alt,
    )


class Drawn(go.Figure):
    """A figure that goes to the browser as it was made, on Streamlit's template.

    All that Streamlit asks of a plotly figure is ``to_dict``; a dict it would make one of, word by word.

    Args:
        figure: what to draw; it stays as it is.
    """

    def __init__(self, figure: Figure) -> None:
        self._made = figure

    def to_dict(self) -> Figure:
        """The figure, its arrays as plotly.js takes them."""
        layout = {"template": _template(), **self._made["layout"]}
        return {"data": [], **{name: _sent(part) for name, part in self._made.items()}, "layout": layout}


@cache
def _template() -> dict[str, Any]:
    template: dict[str, Any] = plotly.io.templates[plotly.io.templates.default].to_plotly_json()
    return template


def _sent(part: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, dict):
        return {name: _sent(value) for name, value in part.items()}
    if isinstance(part, list) and part and isinstance(part[0], dict):
        return [_sent(value) for value in part]
    if not isinstance(part, np.ndarray):
        return part
    if part.dtype.kind != "f" or not part.size:
        return part.tolist()
    # As JSON's digits an array takes thrice the room, and time.
    packed = {"dtype": f"f{part.itemsize}", "bdata": base64.b64encode(np.ascontiguousarray(part).data).decode()}
    return packed if part.ndim == 1 else {**packed, "shape": ", ".join(map(str, part.shape))}
