"""Lines over an axis, with bands for spread and dashes for floors: whatever is measured against something.

Each line has its name at its end. Bands are hidden unless a figure has just one: ``app/page_script/charts.js`` shows
the band of the line that is pointed at and turns the others grey.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.figures import ends
from app.figures.ends import End
from app.figures.theme import GREY, SERIES, Figure, axis, finish, ruled, style
from attention_core.formatting import formatted

BAND = 0.18
"""Opacity of a band."""
AROUND = 70
"""Pixels of a figure's height that the axis beneath it takes."""
NEAR = 60
"""Pixels from a point within which it is pointed at."""


@dataclass(frozen=True)
class Curve:
    """One line.

    Attributes:
        name: on hover, and in a legend.
        x: positions.
        y: values; None leaves a gap.
        low: lower edge of the band, where there is one.
        high: upper edge of the band.
        colour: place in the shared series of colours; a variant's is the same on every page.
        dash: plotly's name of the stroke: ``"dash"`` for floors and references, ``"dot"`` for the zero.
        marks: whether points are marked.
        hollow: whether the marks are open circles.
        group: lines of one group are lit together; the name itself if empty.
        listed: whether its name stands at its end.
        label: what stands at its end, where that is shorter than the name.
        size: of its marks, in pixels.
        halo: drawn wide, pale and in steps, with rings around its points: what stands out among the others.
        notes: what is told of each point on hover, in place of its numbers, as Plotly's markup.
        ways: where a click on each point leads, as the rest of an address that ``curves`` is given the beginning of.
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
    label: str = ""
    size: int = 6
    halo: bool = False
    notes: Sequence[str] = ()
    ways: Sequence[str] = ()


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
    form: str = ".3g",
    height: int = 460,
    top: float | None = None,
    mark: float | None = None,
    x_ticks: Sequence[float] = (),
    way: str = "",
) -> Figure:
    """Draw lines on common axes.

    Args:
        lines: what to draw.
        x_title: of the horizontal axis, with its unit.
        y_title: of the vertical axis, with its unit.
        log_x: whether equal ratios are equal distances, horizontally.
        log_y: the same, vertically; there values that are not above zero leave gaps.
        form: Python's format of the values on hover.
        height: in pixels.
        mark: position of a thin upright line: what the page speaks of.
        top: where a linear vertical axis ends, None for where the values do; a double click shows what lies above.
        x_ticks: where the horizontal axis is labelled; empty leaves it to plotly.
        way: how the addresses begin that points lead to.
    """
    alone = sum(line.low is not None and line.high is not None for line in lines) == 1
    data = [trace for line in lines for trace in _traces(line, form, log_y=log_y, band=BAND if alone else 0.0)]
    xaxis = axis(x_title, type="log" if log_x else "linear")
    if x_ticks:
        xaxis |= {"tickvals": list(x_ticks), "ticktext": [f"{x:g}" for x in x_ticks]}
    yaxis = axis(y_title, type="log" if log_y else "linear")
    if top is not None and not log_y:
        yaxis["range"] = [-0.03 * top, top]  # a line at zero keeps its full width
    figure = finish(data, height=height, xaxis=xaxis, yaxis=yaxis, hovermode="closest", hoverdistance=NEAR)
    if way:
        figure["layout"]["meta"] = {"way": way}
    if mark is not None:
        ruled(figure, x=mark, color=SERIES[GREY], width=1, dash="dot")
    _name(figure, lines, log_x=log_x, log_y=log_y)
    return figure


def _traces(line: Curve, form: str, *, log_y: bool, band: float) -> Iterable[dict[str, Any]]:
    """A line, its band before it."""
    look, group = style(line.colour), line.group or line.name
    if line.low is not None and line.high is not None:
        yield {
            "type": "scatter",
            "x": [*line.x, *reversed(line.x)],
            "y": [*line.high, *reversed(line.low)],
            "mode": "lines",
            "fill": "toself",
            "opacity": band,
            "fillcolor": look.colour,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": group,
        }
    notes = line.notes or [formatted(math.nan if y is None else y, form) for y in line.y]
    hover = "%{customdata}" if line.notes else "%{x}: %{customdata}"
    yield {
        "type": "scatter",
        "x": list(line.x),
        "y": [None if log_y and y is not None and y <= 0 else y for y in line.y],
        "name": line.name,
        "legendgroup": group,
        "showlegend": line.listed,
        "mode": "lines+markers" if line.marks else "lines",
        "opacity": 0.45 if line.halo else 1.0,
        "line": {
            "color": look.colour,
            "dash": look.dash if line.dash == "solid" else line.dash,
            "width": 5 if line.halo else 2,
            "shape": "hv" if line.halo else "linear",
        },
        "marker": {
            "size": 15 if line.halo else line.size,
            "symbol": look.mark + ("-open" if line.hollow or line.halo else ""),
            "line": {"width": 2 if line.hollow or line.halo else 0},
        },
        **({} if line.halo else {"customdata": list(notes)}),
        **({"meta": {"ways": list(line.ways)}} if line.ways else {}),
        **({"hoverinfo": "skip"} if line.halo else {"hovertemplate": f"{hover}<extra>{line.name}</extra>"}),
    }


def _name(figure: Figure, lines: Sequence[Curve], *, log_x: bool, log_y: bool) -> None:
    """Write the lines' names at their ends, where there is room for all of them; else a legend has them."""
    layout = figure["layout"]
    places = [i for i, trace in enumerate(figure["data"]) if "name" in trace]  # the others are bands
    found = [
        end
        for line, place in zip(lines, places, strict=True)
        if line.listed and (end := _end(line, place, log_x=log_x, log_y=log_y))
    ]
    if not found:
        return
    across = [x for line in lines for x in _on_axis(line.x, log=log_x)]
    heights = [y for trace in figure["data"] for y in _on_axis(trace["y"], log=log_y)]
    left, right = _padded(min(across), max(across), 0.02)
    low, high = layout["yaxis"].get("range") or _padded(min(heights), max(heights), 0.05)
    parts = ends.labels(
        found, right=right, low=low, high=high, height=layout["height"] - AROUND, log_x=log_x, log_y=log_y
    )
    if parts is None:
        return
    layout["xaxis"]["range"], layout["yaxis"]["range"] = [left, right], [low, high]
    layout["margin"] = {**layout["margin"], "r": ends.room(found)}
    layout |= {"showlegend": False, **parts, "shapes": [*layout.get("shapes", ()), *parts["shapes"]]}


def _end(line: Curve, place: int, *, log_x: bool, log_y: bool) -> End | None:
    """Where a line ends, None where nothing of it is drawn."""
    drawn = [
        (x, y)
        for pair in zip(line.x, line.y, strict=True)
        for x in _on_axis(pair[:1], log=log_x)
        for y in _on_axis(pair[1:], log=log_y)
    ]
    if not drawn:
        return None
    return End(place, line.label or line.name, line.colour, *max(drawn), hollow=line.hollow)


def _on_axis(values: Iterable[float | None], *, log: bool) -> list[float]:
    """Numbers as an axis counts them; without those that it cannot show."""
    shown = [float(y) for y in values if y is not None and math.isfinite(y) and (not log or y > 0)]
    return [math.log10(y) for y in shown] if log else shown


def _padded(low: float, high: float, share: float) -> tuple[float, float]:
    """Ends of an axis with some room beyond the values; an axis of one value has it in its middle."""
    more = share * (high - low) or 0.5
    return low - more, high + more
