"""A recurrent state in numbers, at one token: its normaliser, how large it has grown, and what is read from it."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.figures.theme import GREY, SERIES, finish


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
) -> go.Figure:
    """Three pictures in a column, so that all of them change at once; names stand at their own picture.

    Args:
        keys: ``z_i``, ``[C]``.
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
    figure = make_subplots(
        rows=3, cols=1, vertical_spacing=0.2, subplot_titles=(keys_title, sizes_title, outputs_title)
    )
    figure.add_bar(
        x=np.arange(len(keys)),
        y=keys,
        marker_color=SERIES[0],
        showlegend=False,
        row=1,
        col=1,
        hovertemplate=feature + " %{x}: %{y:.3g}<extra></extra>",
    )
    for place, (name, values) in enumerate(sizes.items()):
        figure.add_scatter(
            x=np.arange(len(values)),
            y=values,
            name=name,
            line={"color": SERIES[place + 1], "width": 2},
            row=2,
            col=1,
            mode="lines+markers" if len(values) == 1 else "lines",
            legend="legend",
            hovertemplate="%{x}: %{y:.3g}<extra>" + name + "</extra>",
        )
    figure.add_vline(token, line={"color": SERIES[GREY], "width": 2, "dash": "dot"}, row=2, col=1)
    for place, (name, values) in enumerate(outputs.items()):
        figure.add_bar(
            x=np.arange(len(values)),
            y=values,
            name=name,
            marker_color=SERIES[place + 3],
            row=3,
            col=1,
            legend="legend2",
            hovertemplate=entry + " %{x}: %{y:.4g}<extra>" + name + "</extra>",
        )
    figure.update_yaxes(range=tallest, row=1)
    for row, title in enumerate((feature, position, entry), 1):
        figure.update_xaxes(title={"text": title, "standoff": 6}, row=row)
    finish(figure, height=700)
    figure.update_annotations(font={"size": 13}, xanchor="left", x=0)
    figure.layout.annotations[1].yshift = 26  # over the names of its lines
    over = {"orientation": "h", "yanchor": "bottom", "y": figure.layout.yaxis2.domain[1], "x": 0}
    under = {"orientation": "h", "yanchor": "top", "y": -0.1, "x": 0}
    return figure.update_layout(margin={"t": 28}, bargap=0.15, legend=over, legend2=under)
