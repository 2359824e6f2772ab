"""What only timing charts have: the stamp of the machines beneath them."""

import html
from collections.abc import Sequence

from app.figures.theme import GREY, SERIES, Figure


def stamped(figure: Figure, lines: Sequence[str]) -> Figure:
    """Write lines of small type beneath the figure, so that they stay with it wherever it goes.

    Args:
        figure: a finished figure.
        lines: plain text; what plotly takes for markup is shown as it is.
    """
    layout, room = figure["layout"], 15 * len(lines)
    stamp = {
        "text": "<br>".join(html.escape(line, quote=False) for line in lines),
        "x": 0,
        "y": 0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "yshift": -50,
        "align": "left",
        "showarrow": False,
        "font": {"size": 11, "color": SERIES[GREY]},
    }
    below = {
        "xaxis": {**layout["xaxis"], "tickangle": 0},  # turned labels would push the axis's title into the stamp
        "annotations": [*layout.get("annotations", ()), stamp],
        "margin": {**layout["margin"], "b": 62 + room},
        "height": layout["height"] + room,
    }
    return {**figure, "layout": {**layout, **below}}
