"""Three charts about the state of a recurrent attention variant at one token of a text.

The first shows one number for each feature, such as the feature's sum over the keys (the normaliser). The second shows
the norm of the state after each token. The third shows the output at the chosen token.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.figures.theme import GREY, SERIES, Figure, add_line, annotation, finish, format_numbers

ROWS = ((0.8, 1.0), (0.4, 0.6), (0.0, 0.2))
"""Lower and upper end of each chart, from the top, as fractions of the figure's height."""


def memory(
    keys: np.ndarray,
    sizes: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    token: int,
    *,
    colours: Mapping[str, str],
    keys_name: str,
    keys_title: str,
    feature: str,
    sizes_title: str,
    position: str,
    mark: str,
    outputs_title: str,
    entry: str,
    keys_range: tuple[float, float],
) -> Figure:
    """Draw a recurrent state in three charts: a bar per feature, lines over the tokens, and one token's output as bars.

    The charts are one figure, so that they update together.

    Args:
        keys: the bars of the first chart, one for each feature, ``[C]``, such as the state's normaliser.
        sizes: lines of the second chart by name: norm of the state or another quantity after each token, ``[n]``.
        outputs: bars of the last chart: the token's output by the name of its method, ``[d_v]`` each.
        token: index of the token.
        colours: CSS colour of each line and of each output, by name.
        keys_name: name of the line that is the norm of the first chart's bars; the bars have its colour.
        keys_title: title of the first chart.
        feature: title of the first chart's horizontal axis.
        sizes_title: title of the second chart.
        position: title of the second chart's horizontal axis.
        mark: label of the line at the token in the second chart.
        outputs_title: title of the last chart.
        entry: title of the last chart's horizontal axis.
        keys_range: lower and upper end of the first chart's vertical axis.
    """
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "x": np.arange(len(keys)),
            "y": keys,
            "marker": {"color": colours[keys_name]},
            "showlegend": False,
            **_axes(1),
            "hovertemplate": feature + " %{x}: %{customdata}<extra></extra>",
            "customdata": format_numbers(keys),
        }
    ]
    data += [
        {
            "type": "scatter",
            "x": np.arange(len(values)),
            "y": values,
            "name": name,
            "line": {"color": colours[name], "width": 2},
            **_axes(2),
            "mode": "lines+markers" if len(values) == 1 else "lines",
            "legend": "legend",
            "hovertemplate": "%{x}: %{customdata}<extra>" + name + "</extra>",
            "customdata": format_numbers(values),
        }
        for name, values in sizes.items()
    ]
    data += [
        {
            "type": "bar",
            "x": np.arange(len(values)),
            "y": values,
            "name": name,
            "marker": {"color": colours[name]},
            **_axes(3),
            "legend": "legend2",
            "hovertemplate": entry + " %{x}: %{customdata}<extra>" + name + "</extra>",
            "customdata": format_numbers(values, 4),
        }
        for name, values in outputs.items()
    ]
    layout: dict[str, Any] = {}
    for number, ((low, high), title) in enumerate(zip(ROWS, (feature, position, entry), strict=True), 1):
        axis_names = _axes(number)
        suffix = axis_names["xaxis"][1:]
        layout[f"xaxis{suffix}"] = {"title": {"text": title, "standoff": 6}, "anchor": axis_names["yaxis"]}
        layout[f"yaxis{suffix}"] = {"domain": [low, high], "anchor": axis_names["xaxis"]}
    layout["yaxis"]["range"] = list(keys_range)
    title_style = {"font": {"size": 13}, "xanchor": "left", "xref": "paper", "yanchor": "bottom", "yref": "paper"}
    texts = (keys_title, sizes_title, outputs_title)
    titles = [annotation(text, 0, high, **title_style) for (_low, high), text in zip(ROWS, texts, strict=True)]
    before_middle = token < max(map(len, sizes.values())) / 2
    place = {"xref": "x2", "yref": "y2 domain", "yanchor": "top", "xanchor": "left" if before_middle else "right"}
    titles.append(annotation(mark, token, 1, **place))
    titles[1]["yshift"] = titles[2]["yshift"] = 26  # The titles of these charts are above their legends.
    figure = finish(
        data,
        height=700,
        **layout,
        annotations=titles,
        margin={"t": 28},
        bargap=0.15,
        legend={"y": ROWS[1][1]},
        legend2={"orientation": "h", "yanchor": "bottom", "y": ROWS[2][1], "x": 0},
    )
    add_line(figure, x=token, axes="2", color=SERIES[GREY], width=2, dash="dot")
    return figure


def _axes(row: int) -> dict[str, str]:
    """Return plotly's names of the two axes of a row; the names of the first row's axes have no number."""
    suffix = "" if row == 1 else str(row)
    return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
