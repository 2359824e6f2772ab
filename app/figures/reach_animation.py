"""A heat map, animated layer by layer, of the tokens that information from one chosen token has reached."""

from collections.abc import Sequence

import numpy as np

from app.figures.theme import Figure, axis, escape_label, finish


def reach_animation(
    layers: np.ndarray,
    labels: Sequence[str],
    colours: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    play: str,
    pause: str,
    layer_word: str,
) -> Figure:
    """Draw one row per layer and one column per token; a token is coloured from the layer that first reaches it.

    Args:
        layers: for each token, the layer at which the chosen token's information first reaches it, ``[n]``; 0 for the
            chosen token itself, negative for tokens that it never reaches.
        labels: one label per token.
        colours: CSS colours of layers 0, 1, ....
        x_title: title of the horizontal axis.
        y_title: title of the vertical axis.
        play: label of the play button.
        pause: label of the pause button.
        layer_word: word before the layer on the slider.
    """
    count = len(colours)
    names = [escape_label(label) for label in labels]
    data = [
        {
            "type": "heatmap",
            "z": _rows_up_to(layers, count - 1, count),
            "zmin": -0.5,
            "zmax": count - 0.5,
            "colorscale": _stepped_scale(colours),
            "showscale": False,
            "ygap": 2,
            "xgap": 1 if len(names) <= 200 else 0,
            "text": [names] * count,
            "hovertemplate": y_title + " %{y}<br>%{x} “%{text}”: %{z}<extra></extra>",
            "hoverongaps": False,
        }
    ]
    instant = {"mode": "immediate", "transition": {"duration": 0}, "frame": {"duration": 0, "redraw": True}}
    play_options = {"fromcurrent": False, "transition": {"duration": 0}, "frame": {"duration": 700, "redraw": True}}
    figure = finish(
        data,
        height=270 + 24 * count,
        xaxis=axis(x_title, range=[-0.5, len(layers) - 0.5]),
        yaxis=axis(y_title, range=[-0.5, count - 0.5], dtick=1),
        margin={"l": 8, "r": 8, "t": 8, "b": 160},
        updatemenus=[
            {
                "type": "buttons",
                "direction": "left",
                "x": 0,
                "y": 0,
                "xanchor": "left",
                "yanchor": "top",
                "pad": {"t": 132},
                "showactive": False,
                "buttons": [
                    {"label": f"▶ {play}", "method": "animate", "args": [None, play_options]},
                    {"label": f"❚❚ {pause}", "method": "animate", "args": [[None], instant]},
                ],
            }
        ],
        sliders=[
            {
                "active": count - 1,
                "x": 0,
                "len": 1,
                "y": 0,
                "pad": {"t": 50},
                "ticklen": 4,
                "currentvalue": {"prefix": f"{layer_word} ", "font": {"size": 13}},
                "steps": [
                    {"label": str(layer), "method": "animate", "args": [[str(layer)], instant]}
                    for layer in range(count)
                ],
            }
        ],
    )
    frames = [
        {"name": str(layer), "data": [{"type": "heatmap", "z": _rows_up_to(layers, layer, count)}]}
        for layer in range(count)
    ]
    return {**figure, "frames": frames}


def _rows_up_to(layers: np.ndarray, layer: int, count: int) -> np.ndarray:
    """Return the heat map's values for ``count`` layers, ``[count, n]``; rows after ``layer`` are empty (NaN)."""
    rows = np.arange(count)[:, None]
    return np.where((layers >= 0) & (layers <= rows) & (rows <= layer), layers, np.nan).astype(np.float32)


def _stepped_scale(colours: Sequence[str]) -> list[list[object]]:
    """Return a colour scale without blends: each integer has its own colour."""
    count = len(colours)
    return [[edge / count, colour] for i, colour in enumerate(colours) for edge in (i, i + 1)]
