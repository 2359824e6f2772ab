"""Bars: one pinned row of several matrices, and any numbers that belong to named things."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from app.figures.theme import SERIES, finish


def row_bars(
    rows: Mapping[str, np.ndarray], tokens: Sequence[str], *, key_title: str, value_title: str, most: int = 24
) -> go.Figure:
    """Each variant's weights on the keys of one query.

    Args:
        rows: the row of each variant by name, ``[n]``; NaN where the pair may not look.
        tokens: one label per key.
        key_title: the horizontal axis.
        value_title: the vertical axis.
        most: keys shown at most: those that any variant weighs most, in the order of the text.
    """
    values = np.nan_to_num(np.stack(list(rows.values())))
    sizes = np.abs(values).max(0)
    shown = np.sort([j for j in np.argsort(-sizes, kind="stable")[:most] if sizes[j] > 0]).astype(int)
    return grouped_bars(
        {name: row[shown] for name, row in zip(rows, values, strict=True)},
        [tokens[j] for j in shown],
        numbers=shown.tolist(),
        x_title=key_title,
        y_title=value_title,
    )


def grouped_bars(
    series: Mapping[str, Sequence[float] | np.ndarray],
    labels: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    numbers: Sequence[int] | None = None,
    log: bool = False,
    stacked: bool = False,
    height: int = 360,
) -> go.Figure:
    """One bar per label and series.

    Args:
        series: the values by name, one per label; NaN leaves a gap.
        labels: what the bars belong to; labels may repeat.
        x_title: the horizontal axis.
        y_title: the vertical axis, with its unit.
        numbers: the number of each label, told on hover; by default its place.
        log: whether equal ratios are equal heights.
        stacked: bars of one label on top of each other instead of side by side.
        height: in pixels.
    """
    places = list(range(len(labels))) if numbers is None else list(numbers)
    figure = go.Figure()
    for index, (name, values) in enumerate(series.items()):
        figure.add_bar(
            name=name,
            x=[str(i) for i in places],
            y=np.asarray(values, dtype=float),
            marker_color=SERIES[index % len(SERIES)],
            customdata=[[i, _plain(label)] for i, label in zip(places, labels, strict=True)],
            hovertemplate="%{customdata[0]} “%{customdata[1]}”: %{y:.3g}<extra>" + name + "</extra>",
        )
    names = {str(i): _short(label) for i, label in zip(places, labels, strict=True)}
    # Plotly leaves labels out where they would not fit; every bar tells its own on hover.
    figure.update_xaxes(title=x_title, type="category", labelalias=names, tickangle=-45)
    if log:
        figure.update_yaxes(title=y_title, type="log")
    else:
        figure.update_yaxes(title=y_title, rangemode="tozero")
    figure.update_layout(barmode="relative" if stacked else "group")
    return finish(figure, height=height)


def _short(token: str) -> str:
    return _plain(token if len(token) <= 14 else token[:13] + "…")


def _plain(token: str) -> str:
    # Plotly reads tags in labels and hovers; a token is never a tag.
    return token.replace("&", "&amp;").replace("<", "&lt;")
