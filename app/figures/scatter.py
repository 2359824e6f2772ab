"""Scatter plots of estimated values over true values, with the diagonal on which both are equal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.figures.theme import DECIMALS, GREY, SERIES, Figure, axis, escape_label, finish


@dataclass(frozen=True, eq=False)
class Points:
    """One set of points.

    Attributes:
        name: name in the legend.
        x: true values, any shape.
        y: estimated values, of the same shape.
        colour: index in the shared series of colours.
        notes: text of each point's tooltip before its numbers, in the order of the flattened values.
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
    """Draw sets of points and the diagonal; NaN, and on logarithmic axes values that are not above zero, are left out.

    Args:
        clouds: sets of points to draw.
        x_title: title of the true values' axis, with its unit.
        y_title: title of the estimated values' axis.
        diagonal: name of the diagonal in the legend; empty to leave it out.
        log: whether both axes are logarithmic.
        height: height in pixels.
        most: largest number of points per set: evenly spaced in the order of the true values, including both ends.
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
            trace["customdata"] = [escape_label(cloud.notes[i]) for i in order]
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
