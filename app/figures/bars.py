"""One pinned row of several matrices as grouped bars."""

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
    shown = np.sort([j for j in np.argsort(-sizes, kind="stable")[:most] if sizes[j] > 0])
    figure = go.Figure()
    for index, (name, row) in enumerate(zip(rows, values, strict=True)):
        figure.add_bar(
            name=name,
            x=[str(j) for j in shown],
            y=row[shown],
            marker_color=SERIES[index % len(SERIES)],
            customdata=[[int(j), tokens[j]] for j in shown],
            hovertemplate="%{customdata[0]} “%{customdata[1]}”: %{y:.3g}<extra>" + name + "</extra>",
        )
    figure.update_xaxes(
        title=key_title, type="category", tickmode="array", tickvals=[str(j) for j in shown],
        ticktext=[_short(tokens[j]) for j in shown], tickangle=-45,
    )  # fmt: skip
    figure.update_yaxes(title=value_title, rangemode="tozero")
    return finish(figure, height=360)


def _short(token: str) -> str:
    # Plotly reads tags in labels; a token is never a tag.
    plain = token.replace("&", "&amp;").replace("<", "&lt;")
    return plain if len(token) <= 14 else plain[:13] + "…"
