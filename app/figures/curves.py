"""Lines over an axis, with bands for spread and dashes for floors: whatever is measured against something."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.figures.theme import SERIES, finish


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line.

    Attributes:
        name: in the legend.
        x: positions.
        y: values; None leaves a gap.
        low: lower edge of the band, where there is one.
        high: upper edge of the band.
        colour: place in the shared series of colours; the same variant keeps its place on every page.
        dash: plotly's name of the stroke: ``"dash"`` for floors and references, ``"dot"`` for the zero.
        marks: whether points are marked.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    colour: int = 0
    dash: str = "solid"
    marks: bool = True


def curves(
    lines: Sequence[Curve],
    *,
    x_title: str,
    y_title: str,
    log_x: bool = False,
    log_y: bool = False,
    number: str = ".3g",
    height: int = 460,
) -> go.Figure:
    """Draw lines on common axes.

    Args:
        lines: what to draw.
        x_title: of the horizontal axis, with its unit.
        y_title: of the vertical axis, with its unit.
        log_x: whether equal ratios are equal distances, horizontally.
        log_y: the same, vertically.
        number: format of the values on hover.
        height: in pixels.
    """
    figure = go.Figure()
    for line in lines:
        colour = SERIES[line.colour % len(SERIES)]
        if line.low is not None and line.high is not None:
            figure.add_scatter(
                x=[*line.x, *reversed(line.x)], y=[*line.high, *reversed(line.low)], fill="toself", opacity=0.18,
                fillcolor=colour, line={"width": 0}, hoverinfo="skip", showlegend=False, legendgroup=line.name,
            )  # fmt: skip
        figure.add_scatter(
            x=list(line.x), y=list(line.y), name=line.name, legendgroup=line.name,
            mode="lines+markers" if line.marks else "lines", line={"color": colour, "dash": line.dash, "width": 2},
            marker={"size": 6}, hovertemplate=f"%{{x}}: %{{y:{number}}}<extra>{line.name}</extra>",
        )  # fmt: skip
    figure.update_xaxes(title=x_title, type="log" if log_x else "linear")
    figure.update_yaxes(title=y_title, type="log" if log_y else "linear")
    return finish(figure, height=height)
