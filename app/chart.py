"""A figure on the page, with the button that saves it as a picture."""

import plotly.graph_objects as go
import streamlit as st

from app.visit import Visit


def choose_format() -> None:
    """How figures are saved, on every page; a page shows it once, beside its figures."""
    Visit.picture.draw()


def show(figure: go.Figure, *, key: str, name: str, alt: str) -> None:
    """Draw a figure.

    Args:
        figure: what to draw.
        key: the element's key, another one for each drawing of a figure that grows.
        name: of the saved file, without its ending.
        alt: the figure in one sentence, for those who cannot see it.
    """
    button = {"filename": name, "format": Visit.picture.value, "scale": 2}
    st.plotly_chart(
        figure,
        key=key,
        config={
            "displaylogo": False,
            "displayModeBar": True,
            "modeBarButtons": [["toImage"]],
            "toImageButtonOptions": button,
        },
        alt=alt,
    )
