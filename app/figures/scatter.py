"""What was estimated against what is true, one point each, with the diagonal on which both agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.figures.theme import DECIMALS, GREY, SERIES, Figure, axis, finish, plain


@dataclass(frozen=True, eq=False)
class Points:
    """One cloud of points.

    Attributes:
        name: in the legend.
        x: true values, any shape.
        y: estimated values, of the same shape.
        colour: place in the shared series of colours.
        notes: what is told of each point on hover before its numbers, in the order of the flattened values.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    colour: int = 0
    notes: Sequence[str] = ()


def scatter(
    clouds: Sequence[Points],
    *,
    x_title: str,
    y_title: str,
    diagonal: str,
    log: bool = False,
    height: int = 420,
    most: int = 3000,
) -> Figure:
    """Draw clouds of points over the diagonal; NaN, and on log axes what is not above zero, is left out.

    Args:
        clouds: what to draw.
        x_title: of the true values, with their unit.
        y_title: of the estimated ones.
        diagonal: the diagonal's name in the legend; empty leaves it out.
        log: whether equal ratios are equal distances, on both axes.
        height: in pixels.
        most: points drawn at most per cloud: evenly over the order of the true values, both ends among them.
    """
    data = []
    ends: list[float] = []
    for cloud in clouds:
        x, y = np.ravel(cloud.x), np.ravel(cloud.y)
        kept = np.isfinite(x) & np.isfinite(y) & ((x > 0) & (y > 0) if log else True)
        order = np.flatnonzero(kept)[np.argsort(x[kept], kind="stable")]
        if len(order) > most:
            order = order[np.linspace(0, len(order) - 1, most).round().astype(int)]
        if len(order):
            ends += [float(x[order].min()), float(x[order].max())]
        colour = SERIES[cloud.colour % len(SERIES)]
        trace = {
            "type": "scatter",
            "x": x[order],
            "y": y[order],
            "name": cloud.name,
            "mode": "markers",
            "marker": {"color": colour, "size": 5, "opacity": 0.55},
            "hovertemplate": ("%{customdata}<br>" if cloud.notes else "")
            + f"{x_title}: %{{x:{DECIMALS}}}<br>{y_title}: %{{y:{DECIMALS}}}<extra>{cloud.name}</extra>",
        }
        if cloud.notes:
            trace["customdata"] = [plain(cloud.notes[i]) for i in order]
        data.append(trace)
    if diagonal and ends:
        span = [min(ends), max(ends)]
        data.append(
            {
                "type": "scatter",
                "x": span,
                "y": span,
                "name": diagonal,
                "mode": "lines",
                "hoverinfo": "skip",
                "line": {"color": SERIES[GREY], "dash": "dash", "width": 1.5},
            }
        )
    kind = "log" if log else "linear"
    return finish(data, height=height, xaxis=axis(x_title, type=kind), yaxis=axis(y_title, type=kind))
