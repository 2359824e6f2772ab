"""A recurrent state in numbers, at one token: its normaliser, how large it has grown, and what is read from it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.figures.theme import GREY, SERIES, Figure, finish, numerals, ruled

ROWS = ((0.8, 1.0), (0.4, 0.6), (0.0, 0.2))
"""From where to where each picture stands, from the top, as shares of the height."""


def memory(
    keys: np.ndarray,
    sizes: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    token: int,
    *,
    keys_title: str,
    feature: str,
    sizes_title: str,
    position: str,
    outputs_title: str,
    entry: str,
    tallest: tuple[float, float],
) -> Figure:
    """Three pictures in a column, so that all of them change at once; names stand at their own picture.

    Args:
        keys: ``z_i``, or what else the first picture shows of each feature, ``[C]``.
        sizes: norms over all tokens by name, ``[n]`` each.
        outputs: the token's output by name of the way it was found, ``[d_v]`` each.
        token: i.
        keys_title: what the first picture's bars are.
        feature: its axis.
        sizes_title: what the lines are.
        position: their axis.
        outputs_title: what the last picture's bars are.
        entry: its axis.
        tallest: lower and upper end of the first picture, the same for all tokens.
    """
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "x": np.arange(len(keys)),
            "y": keys,
            "marker": {"color": SERIES[0]},
            "showlegend": False,
            **_axes(1),
            "hovertemplate": feature + " %{x}: %{customdata}<extra></extra>",
            "customdata": numerals(keys),
        }
    ]
    data += [
        {
            "type": "scatter",
            "x": np.arange(len(values)),
            "y": values,
            "name": name,
            "line": {"color": SERIES[place + 1], "width": 2},
            **_axes(2),
            "mode": "lines+markers" if len(values) == 1 else "lines",
            "legend": "legend",
            "hovertemplate": "%{x}: %{customdata}<extra>" + name + "</extra>",
            "customdata": numerals(values),
        }
        for place, (name, values) in enumerate(sizes.items())
    ]
    data += [
        {
            "type": "bar",
            "x": np.arange(len(values)),
            "y": values,
            "name": name,
            "marker": {"color": SERIES[place + 1 + len(sizes)]},
            **_axes(3),
            "legend": "legend2",
            "hovertemplate": entry + " %{x}: %{customdata}<extra>" + name + "</extra>",
            "customdata": numerals(values, 4),
        }
        for place, (name, values) in enumerate(outputs.items())
    ]
    layout: dict[str, Any] = {}
    for number, ((low, high), title) in enumerate(zip(ROWS, (feature, position, entry), strict=True), 1):
        letters = _axes(number)
        own = letters["xaxis"][1:]
        layout[f"xaxis{own}"] = {"title": {"text": title, "standoff": 6}, "anchor": letters["yaxis"]}
        layout[f"yaxis{own}"] = {"domain": [low, high], "anchor": letters["xaxis"]}
    layout["yaxis"]["range"] = list(tallest)
    titles = [
        {
            "text": title,
            "font": {"size": 13},
            "showarrow": False,
            "x": 0,
            "xanchor": "left",
            "xref": "paper",
            "y": high,
            "yanchor": "bottom",
            "yref": "paper",
        }
        for (_low, high), title in zip(ROWS, (keys_title, sizes_title, outputs_title), strict=True)
    ]
    titles[1]["yshift"] = 26  # over the names of its lines
    figure = finish(
        data,
        height=700,
        **layout,
        annotations=titles,
        margin={"t": 28},
        bargap=0.15,
        legend={"y": ROWS[1][1]},
        legend2={"orientation": "h", "yanchor": "top", "y": -0.1, "x": 0},
    )
    ruled(figure, x=token, axes="2", color=SERIES[GREY], width=2, dash="dot")
    return figure


def _axes(row: int) -> dict[str, str]:
    """What plotly calls the axes of a row: its first ones have no number."""
    own = "" if row == 1 else str(row)
    return {"xaxis": f"x{own}", "yaxis": f"y{own}"}
