"""What only timing charts have: the stamp of the machines beneath them, and the level at which two are equal."""

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from app.figures.theme import GREY, SERIES


def stamped(figure: go.Figure, lines: Sequence[str]) -> go.Figure:
    """Write lines of small type beneath the figure, so that they stay with it wherever it goes.

    Args:
        figure: a finished figure.
        lines: plain text; what plotly takes for markup is shown as it is.
    """
    figure.add_annotation(
        text="<br>".join(html.escape(line, quote=False) for line in lines),
        x=0,
        y=0,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="top",
        yshift=-50,
        align="left",
        showarrow=False,
        font={"size": 11, "color": SERIES[GREY]},
    )
    room = 15 * len(lines)
    return figure.update_layout(margin_b=62 + room, height=figure.layout.height + room)


def level(figure: go.Figure, y: float) -> go.Figure:
    """Draw a thin line across at a height."""
    figure.add_hline(y, line={"color": SERIES[GREY], "width": 1.5, "dash": "dot"})
    return figure
