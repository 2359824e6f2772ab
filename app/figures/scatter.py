"""A scatter plot of estimated values against true values, with the diagonal on which both are equal."""

import numpy as np

from app.figures.theme import DECIMALS, GREY, SERIES, Figure, axis, finish

MAX_POINTS = 3000
"""Largest number of points drawn."""


def scatter(
    name: str, x: np.ndarray, y: np.ndarray, *, x_title: str, y_title: str, diagonal: str, height: int = 420
) -> Figure:
    """Draw points and the diagonal on logarithmic axes; points with a value that is not above zero are left out.

    At most ``MAX_POINTS`` points are drawn. They are sorted by their true values and chosen at equal steps, including
    the first and the last.

    Args:
        name: name of the points in the legend.
        x: true values, any shape.
        y: estimated values, of the same shape.
        x_title: title of the true values' axis, with its unit.
        y_title: title of the estimated values' axis.
        diagonal: name of the diagonal in the legend.
        height: height in pixels.
    """
    x, y = np.ravel(x), np.ravel(y)
    shown = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    order = np.flatnonzero(shown)[np.argsort(x[shown], kind="stable")]
    if len(order) > MAX_POINTS:
        order = order[np.linspace(0, len(order) - 1, MAX_POINTS).round().astype(int)]
    points = {
        "type": "scatter",
        "x": x[order],
        "y": y[order],
        "name": name,
        "mode": "markers",
        "marker": {"color": SERIES[0], "size": 5, "opacity": 0.55},
        "hovertemplate": f"{x_title}: %{{x:{DECIMALS}}}<br>{y_title}: %{{y:{DECIMALS}}}<extra>{name}</extra>",
    }
    ends = [float(x[i]) for i in order[[0, -1]]] if len(order) else []
    line = {
        "type": "scatter",
        "x": ends,
        "y": ends,
        "name": diagonal,
        "mode": "lines",
        "hoverinfo": "skip",
        "line": {"color": SERIES[GREY], "dash": "dash", "width": 1.5},
    }
    data = [points, line] if ends else [points]
    return finish(data, height=height, xaxis=axis(x_title, type="log"), yaxis=axis(y_title, type="log"))
