"""Bar charts of one query's attention weights, one chart per variant, and of values by label and series."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.figures.theme import GREY, SERIES, Figure, annotation, axis, escape_label, finish, format_numbers

MAX_UNCUT_LABELS = 4
"""Largest number of bar labels that fit below the bars without being cut or turned."""
MAX_KEYS = 24
"""Largest number of keys of one query that are drawn, unless the caller sets another."""


def row_multiples(
    rows: Mapping[str, np.ndarray],
    tokens: Sequence[str],
    *,
    key_title: str,
    value_title: str,
    masked: str = "",
    percent: bool = False,
    max_keys: int = MAX_KEYS,
    min_named: float = 0.0,
) -> Figure:
    """Draw each variant's weights on the keys of one query, in charts above each other with the same axes.

    Bars below zero are orange, as negative weights are in a matrix.

    Args:
        rows: the query's row of each variant's matrix, ``[n]``, by the variant's name; NaN where the pair is masked.
        tokens: one label per key.
        key_title: title of the horizontal axis.
        value_title: name of the values in the tooltip and on the vertical axis.
        masked: name of the crosses at masked pairs in the legend; empty for no crosses.
        percent: whether the values are shares, written as percentages.
        max_keys: largest number of keys shown, so that their names fit. These are the keys with the largest weight in
            any variant, in the order of the text.
        min_named: smallest weight in any variant with which a key's name is written below its bars.
    """
    values = np.nan_to_num(np.stack(list(rows.values())))
    sizes = np.abs(values).max(0)
    indices = np.sort([j for j in np.argsort(-sizes, kind="stable")[:max_keys] if sizes[j] > 0]).astype(int)
    categories = [str(j) for j in indices]
    gap = 0.28 / max(len(rows), 2)
    size = (1 - gap * (len(rows) - 1)) / len(rows)
    names = [[int(j), escape_label(tokens[j])] for j in indices]
    scale, unit = (100, "%") if percent else (1, "")
    data, axes, titles = [], {}, []
    crosses: list[dict[str, object]] = []
    for i, ((name, given), row) in enumerate(zip(rows.items(), values, strict=True)):
        number = str(i + 1) if i else ""
        low = (len(rows) - 1 - i) * (size + gap)
        vertical = axis(value_title, domain=[low, min(low + size, 1.0)], nticks=3)
        if percent:
            vertical["tickformat"] = "~%"
        axes[f"yaxis{number}"] = vertical | ({"matches": "y"} if i else {})
        titles.append(
            annotation(name, 0, 1, xref="x domain", yref=f"y{number} domain", xanchor="left", yanchor="bottom")
        )
        written = [each + unit for each in format_numbers(scale * row[indices])]
        data.append(
            {
                "type": "bar",
                "name": name,
                "x": categories,
                "y": row[indices],
                "yaxis": f"y{number}",
                "marker": {"color": [SERIES[value < 0] for value in row[indices].tolist()]},
                "showlegend": False,
                "customdata": [[*key, value] for key, value in zip(names, written, strict=True)],
                "hovertemplate": "%{customdata[0]} “%{customdata[1]}”: "
                + value_title
                + " %{customdata[2]}<extra>"
                + name
                + "</extra>",
            }
        )
        hidden = [str(j) for j in indices if np.isnan(given[j])]
        if masked and hidden:
            mark = {"symbol": "x-thin", "size": 5, "line": {"width": 1, "color": SERIES[GREY]}}
            crosses.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": masked,
                    "x": hidden,
                    "y": [0] * len(hidden),
                    "yaxis": f"y{number}",
                    "marker": mark,
                    "hoverinfo": "skip",
                    "cliponaxis": False,
                    "showlegend": not crosses,
                }
            )
    aliases = {str(j): escape_label(tokens[j], 14) if sizes[j] >= min_named else " " for j in indices}
    return finish(
        data + crosses,
        height=110 * len(rows) + 110,
        xaxis=axis(
            key_title,
            type="category",
            categoryarray=categories,
            range=[-0.5, len(categories) - 0.5],
            labelalias=aliases,
            tickangle=-45,
            anchor=data[-1]["yaxis"],
        ),
        **axes,
        annotations=titles,
        legend={"x": 1, "xanchor": "right", "y": 1, "itemclick": False, "itemdoubleclick": False},
        margin={"t": 26},
        bargap=0.15,
    )


def grouped_bars(
    series: Mapping[str, Sequence[float] | np.ndarray],
    labels: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    log: bool = False,
    stacked: bool = False,
    height: int = 360,
) -> Figure:
    """Draw one bar per label and series.

    Args:
        series: values by series name, one per label; NaN leaves a gap.
        labels: labels of the bars; labels may repeat.
        x_title: title of the horizontal axis.
        y_title: title of the vertical axis, with its unit.
        log: whether the vertical axis is logarithmic.
        stacked: whether to stack the bars of one label instead of drawing them side by side.
        height: height in pixels.
    """
    label_data = [[i, escape_label(label)] for i, label in enumerate(labels)]
    data = [
        {
            "type": "bar",
            "name": name,
            "x": [str(i) for i in range(len(labels))],
            "y": np.asarray(values, dtype=float),
            "marker": {"color": SERIES[index % len(SERIES)]},
            "customdata": [[*label, value] for label, value in zip(label_data, format_numbers(values), strict=True)],
            "hovertemplate": "%{customdata[0]} “%{customdata[1]}”: %{customdata[2]}<extra>" + name + "</extra>",
        }
        for index, (name, values) in enumerate(series.items())
    ]
    has_room = len(labels) <= MAX_UNCUT_LABELS
    names = {str(i): escape_label(label, *([] if has_room else [14])) for i, label in enumerate(labels)}
    return finish(
        data,
        height=height,
        # Plotly omits axis labels that would not fit. The tooltip of each bar still shows its label.
        xaxis=axis(x_title, type="category", labelalias=names, tickangle=0 if has_room else -45),
        yaxis=axis(y_title, type="log") if log else axis(y_title, rangemode="tozero", separatethousands=True),
        barmode="relative" if stacked else "group",
    )
