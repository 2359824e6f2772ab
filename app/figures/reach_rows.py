"""A heat map with one row per layer: the tokens connected with one chosen token after each layer."""

from collections.abc import Sequence

import numpy as np

from app.figures.theme import Figure, axis, escape_label, finish

MAX_SEPARATE = 80
"""Largest number of tokens with gaps between them; on a phone, more tokens are less than 4 pixels wide."""
MAX_TICKS = 14
"""Largest number of tokens that are all named on the axis; more would overlap on a phone."""


def reach_rows(
    layers: np.ndarray, labels: Sequence[str], colours: Sequence[str], *, x_title: str, y_title: str
) -> Figure:
    """Draw one row per layer and one column per token, and colour the tokens that are connected with a chosen token.

    A token is coloured from the first layer that connects it.

    Args:
        layers: for each token, the first layer that connects it with the chosen token, ``[n]``; 0 for the chosen token
            itself, negative for tokens that are never connected.
        labels: one label per token.
        colours: CSS colours of layers 0, 1, ....
        x_title: title of the horizontal axis.
        y_title: title of the vertical axis.
    """
    count = len(colours)
    names = [escape_label(label) for label in labels]
    chosen = int(np.flatnonzero(layers == 0)[0])
    ticks = {0: "0", len(names) - 1: f"{len(names) - 1}", chosen: f"{chosen} {escape_label(labels[chosen], 9)}"}
    if len(names) <= MAX_TICKS:
        ticks = {i: escape_label(name, 9) for i, name in enumerate(labels)}
    is_connected = (layers >= 0) & (layers <= np.arange(count)[:, None])
    data = [
        {
            "type": "heatmap",
            "z": np.where(is_connected, layers, np.nan).astype(np.float32),
            "zmin": -0.5,
            "zmax": count - 0.5,
            "colorscale": _stepped_scale(colours),
            "showscale": False,
            "ygap": 2,
            "xgap": 1 if len(names) <= MAX_SEPARATE else 0,
            "text": [names] * count,
            "hovertemplate": y_title + " %{y}<br>%{x} “%{text}”: %{z}<extra></extra>",
            "hoverongaps": False,
        }
    ]
    return finish(
        data,
        height=110 + 32 * count,
        xaxis=axis(x_title, range=[-0.5, len(layers) - 0.5], tickvals=list(ticks), ticktext=list(ticks.values())),
        yaxis=axis(y_title, range=[-0.5, count - 0.5], dtick=1),
    )


def _stepped_scale(colours: Sequence[str]) -> list[list[object]]:
    """Return a colour scale without blends: each integer has its own colour."""
    count = len(colours)
    return [[edge / count, colour] for i, colour in enumerate(colours) for edge in (i, i + 1)]
