"""A chart of how a hash sorts tokens: a line from each token's place in the text (top) to its sorted place (bottom)."""

from collections.abc import Sequence

import numpy as np

from app.figures.theme import COLOURS, GREY, SERIES, Figure, axis, escape_label, finish
from app.words.isolation import isolate


def sorting(
    order: np.ndarray,
    kinds: Sequence[int],
    labels: Sequence[str],
    *,
    borders: Sequence[int] = (),
    above: str,
    below: str,
    x_title: str,
    kind: str,
) -> Figure:
    """Draw a line from each token's old position to its new one, coloured by the token's kind, such as its bucket.

    A legend names the kinds if there are at most ``COLOURS``.

    Args:
        order: token indices in their new order, ``[n]``.
        kinds: kind of each token, an integer such as its bucket's number. A click in the legend shows or hides all
            lines of a kind. The kinds take the shared colours in order.
        labels: one label per token.
        borders: positions in the new order before which to draw a border.
        above: label of the lines' upper ends, at the old positions.
        below: label of the lines' lower ends, at the new positions.
        x_title: title of the horizontal axis.
        kind: word before the number of a kind.
    """
    n = len(order)
    rank = np.empty(n, int)
    rank[order] = np.arange(n)
    data, has_colours = [], len(set(kinds)) <= COLOURS
    for colour, number in enumerate(sorted(set(kinds))):
        members = [i for i in range(n) if kinds[i] == number]
        data.append(
            {
                "type": "scatter",
                "x": [x for i in members for x in (i, int(rank[i]), None)],
                "y": [y for _ in members for y in (1, 0, None)],
                "name": f"{kind} {number} ({len(members)})",
                "mode": "lines+markers",
                "line": {"color": SERIES[colour % COLOURS], "width": 1.5 if has_colours else 0.75},
                "marker": {"size": 5 if has_colours else 3},
                "showlegend": has_colours,
                "customdata": [
                    note for i in members for note in [escape_label(f"{i} “{isolate(labels[i])}” → {rank[i]}")] * 3
                ],
                "hovertemplate": "%{customdata}<extra>" + f"{kind} {number}" + "</extra>",
            }
        )
    border_style = {"color": SERIES[GREY], "width": 2}
    y_ticks = {"tickvals": [0, 1], "ticktext": [below, above], "range": [-0.12, 1.1]}
    return finish(
        data,
        height=360,
        xaxis=axis(x_title, range=[-0.8, n - 0.2], showgrid=False, zeroline=False),
        yaxis={**y_ticks, "showgrid": False, "zeroline": False},
        shapes=[
            {"type": "line", "x0": border - 0.5, "x1": border - 0.5, "y0": -0.08, "y1": 0.12, "line": border_style}
            for border in borders
        ],
    )
