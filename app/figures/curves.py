"""Lines over an axis, with bands for spread and dashes for floors: whatever is measured against something."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.figures.theme import GREY, SERIES, Figure, axis, finish, ruled


@dataclass(frozen=True)
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
        hollow: whether the marks are open circles.
        group: lines of one group come and go together with one click on the legend; the name itself if empty.
        listed: whether it stands in the legend.
        halo: drawn wide, pale and in steps, with rings around its points: what stands out among the others.
        notes: what is told of each point on hover, in place of its numbers, as Plotly's markup.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    colour: int = 0
    dash: str = "solid"
    marks: bool = True
    hollow: bool = False
    group: str = ""
    listed: bool = True
    halo: bool = False
    notes: Sequence[str] = ()


def guide(name: str, x: Sequence[float], y: Sequence[float], dash: str = "dot") -> Curve:
    """A grey line without marks, which the others are held against."""
    return Curve(name, x, y, colour=GREY, dash=dash, marks=False)


def curves(
    lines: Sequence[Curve],
    *,
    x_title: str,
    y_title: str,
    log_x: bool = False,
    log_y: bool = False,
    number: str = ".3g",
    height: int = 460,
    top: float | None = None,
    mark: float | None = None,
    x_ticks: Sequence[float] = (),
) -> Figure:
    """Draw lines on common axes.

    Args:
        lines: what to draw.
        x_title: of the horizontal axis, with its unit.
        y_title: of the vertical axis, with its unit.
        log_x: whether equal ratios are equal distances, horizontally.
        log_y: the same, vertically; there values that are not above zero leave gaps.
        number: format of the values on hover.
        height: in pixels.
        mark: position of a thin upright line: what the page speaks of.
        top: where a linear vertical axis ends, None for where the values do; a double click shows what lies above.
        x_ticks: where the horizontal axis is labelled; empty leaves it to plotly.
    """
    data = []
    for line in lines:
        colour = SERIES[line.colour % len(SERIES)]
        group = line.group or line.name
        if line.low is not None and line.high is not None:
            data.append(
                {
                    "type": "scatter",
                    "x": [*line.x, *reversed(line.x)],
                    "y": [*line.high, *reversed(line.low)],
                    "mode": "lines",
                    "fill": "toself",
                    "opacity": 0.18,
                    "fillcolor": colour,
                    "line": {"width": 0},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": group,
                }
            )
        told = (
            {"hoverinfo": "skip"}
            if line.halo
            else {"hovertemplate": f"{_told(line, number)}<extra>{line.name}</extra>"}
        )
        data.append(
            {
                "type": "scatter",
                "x": list(line.x),
                "y": [None if log_y and y is not None and y <= 0 else y for y in line.y],
                "name": line.name,
                "legendgroup": group,
                "showlegend": line.listed,
                "mode": "lines+markers" if line.marks else "lines",
                "opacity": 0.45 if line.halo else 1.0,
                "line": {
                    "color": colour,
                    "dash": line.dash,
                    "width": 5 if line.halo else 2,
                    "shape": "hv" if line.halo else "linear",
                },
                "marker": {
                    "size": 15 if line.halo else 6,
                    "symbol": "circle-open" if line.hollow or line.halo else "circle",
                    "line": {"width": 2 if line.hollow or line.halo else 0},
                },
                **({"customdata": list(line.notes)} if line.notes else {}),
                **told,
            }
        )
    xaxis = axis(x_title, type="log" if log_x else "linear")
    if x_ticks:
        xaxis |= {"tickvals": list(x_ticks), "ticktext": [f"{x:g}" for x in x_ticks]}
    yaxis = axis(y_title, type="log" if log_y else "linear")
    if top is not None and not log_y:
        yaxis["range"] = [-0.03 * top, top]  # a line at zero keeps its full width
    figure = finish(data, height=height, xaxis=xaxis, yaxis=yaxis)
    if mark is not None:
        ruled(figure, x=mark, color=SERIES[GREY], width=1, dash="dot")
    return figure


def _told(line: Curve, number: str) -> str:
    return "%{customdata}" if line.notes else f"%{{x}}: %{{y:{number}}}"
