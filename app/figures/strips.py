"""One strip of tokens per variant: what moved before a place in one ramp, from it on in another, what rests in grey."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.figures.theme import DARK, DECIMALS, LIGHT, Colour, Figure, along, axis, finish, plain

_DECADES = 6
"""The ramps' length: a smaller move has the colour of the smallest on them."""
_NAMED = 30
"""Tokens named on the axis at most, evenly spread: more would overlap on a phone; hovering names any."""
_ROW, _HEAD, _FOOT = 42, 68, 96
"""Pixels of a strip with its title, of the legends above all strips, and of the axis below."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Strip:
    """One variant.

    Attributes:
        title: over the strip.
        sizes: ``[n]``, zero where nothing moves.
    """

    title: str
    sizes: np.ndarray


def strips(
    rows: Sequence[Strip],
    place: int,
    labels: Sequence[str],
    *,
    dark: bool,
    x_title: str,
    before: str,
    after: str,
    still: str,
) -> Figure:
    """Draw the strips over one axis of tokens.

    Args:
        rows: from top to bottom.
        place: the token that was replaced.
        labels: one per token.
        dark: whether it stands on a dark page.
        x_title: the axis.
        before: what the ramp left of the place is.
        after: what the ramp from the place on is.
        still: what grey is.
    """
    ramps = DARK if dark else LIGHT
    n = len(labels)
    sizes = np.full((2 * len(rows), n), np.nan)  # every second row is left free, for the title
    for i, strip in enumerate(rows):
        sizes[2 * i + 1] = strip.sizes
    with np.errstate(divide="ignore"):
        logs = np.where(sizes > 0, np.log10(sizes), np.nan)
    top = float(np.ceil(np.nanmax(logs))) if np.isfinite(logs).any() else 0.0
    scale = {"zmin": top - _DECADES, "zmax": top}
    left = np.arange(n) < place
    names = [f"{i} “{plain(label)}”" for i, label in enumerate(labels)]
    gaps = {"ygap": 0, "xgap": 1 if n <= 128 else 0, "hoverongaps": False, "text": [names] * len(sizes)}
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "z": np.where(sizes == 0, 0.0, np.nan),
            "showscale": False,
            "colorscale": [[0, _css(ramps.masked)], [1, _css(ramps.masked)]],
            "hovertemplate": "%{text}: " + still + "<extra></extra>",
            **gaps,
        }
    ]
    data += [
        {
            "type": "heatmap",
            "z": np.where(shown, logs, np.nan),
            "colorscale": _scale(ramp),
            "customdata": sizes,
            **scale,
            **gaps,
            "hovertemplate": "%{text}: %{customdata:" + DECIMALS + "}<extra></extra>",
            "colorbar": {
                "orientation": "h",
                "len": 0.44,
                "x": x,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "xpad": 0,
                "ypad": 2,
                "thickness": 8,
                "outlinewidth": 0,
                "title": {"text": name, "side": "top", "font": {"size": 12}},
                "tickvals": top - np.array([5, 3, 1]),
                "ticktext": [f"10<sup>{top - k:.0f}</sup>" for k in (5, 3, 1)],
            },
        }
        for shown, ramp, name, x in ((left, ramps.negative, before, 0.0), (~left, ramps.positive, after, 0.5))
    ]
    titles = [
        {
            "x": -0.5,
            "y": 2 * i + 0.1,
            "text": strip.title,
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "middle",
            "xshift": -3,
        }
        for i, strip in enumerate(rows)
    ]
    frames = [
        {
            "type": "rect",
            "x0": place - 0.5,
            "x1": place + 0.5,
            "y0": 2 * i + 0.5,
            "y1": 2 * i + 1.5,
            "line": {"width": 2, "color": _css(ramps.positive[-1])},
        }
        for i in range(len(rows))
    ]
    named = range(0, n, -(-n // _NAMED))
    return finish(
        data,
        height=_ROW * len(rows) + _HEAD + _FOOT,
        xaxis=axis(
            x_title,
            range=[-0.5, n - 0.5],
            showgrid=False,
            zeroline=False,
            automargin=False,
            tickangle=-60,
            tickvals=list(named),
            ticktext=[plain(labels[i], 9) for i in named],
        ),
        yaxis={"visible": False, "range": [2 * len(rows) - 0.5, -0.5]},
        annotations=titles,
        shapes=frames,
        margin={"t": _HEAD, "b": _FOOT},
    )


def _scale(ramp: Sequence[Colour]) -> list[list[object]]:
    # The palest stop is the page's own colour: what moves a little must not look like paper.
    return [[i / 8, _css(colour)] for i, colour in enumerate(along(ramp, np.linspace(0.35 / (len(ramp) - 1), 1, 9)))]


def _css(colour: Sequence[float]) -> str:
    return "rgb({:.0f},{:.0f},{:.0f})".format(*colour)
