"""A heat map with a row per attention variant: how much each token's output changes when one token is replaced.

Changes before and after the replaced token have different colours; unchanged tokens are grey.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.figures.heat import colour_legend, finish_rows
from app.figures.theme import DARK, DECIMALS, LIGHT, Colour, Figure, axis, escape_label, sample_ramp

_DECADES = 6
"""Length of the ramps in decades; smaller changes have the colour of the smallest change on the ramp."""
_MAX_TICKS = 30
"""Largest number of tokens named on the axis, evenly spaced; more would overlap on a phone.

The tooltip names every token.
"""
_ROW, _HEAD, _FOOT = 42, 68, 96
"""Height in pixels of a strip with its title, of the legends above all strips, and of the axis below."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Strip:
    """One row of the heat map, which belongs to one variant.

    Attributes:
        title: title above the strip.
        sizes: how much each token's output changes when one token is replaced, ``[n]``; zero if it does not change.
    """

    title: str
    sizes: np.ndarray


def strips(
    rows: Sequence[Strip],
    token: int,
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
        rows: strips from top to bottom.
        token: index of the token that was replaced.
        labels: one label per token.
        dark: whether the page is dark.
        x_title: title of the axis.
        before: title of the ramp for tokens before ``token``.
        after: title of the ramp for tokens from ``token`` on.
        still: tooltip of unchanged tokens, which are grey.
    """
    ramps = DARK if dark else LIGHT
    n = len(labels)
    sizes = np.full((2 * len(rows), n), np.nan)  # The row above each strip stays empty, for the strip's title.
    for i, strip in enumerate(rows):
        sizes[2 * i + 1] = strip.sizes
    with np.errstate(divide="ignore"):
        logs = np.where(sizes > 0, np.log10(sizes), np.nan)
    top = float(np.ceil(np.nanmax(logs))) if np.isfinite(logs).any() else 0.0
    scale = {"zmin": top - _DECADES, "zmax": top}
    is_before = np.arange(n) < token
    names = [f"{i} “{escape_label(label)}”" for i, label in enumerate(labels)]
    cell_options = {"ygap": 0, "xgap": 1 if n <= 128 else 0, "hoverongaps": False, "text": [names] * len(sizes)}
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "z": np.where(sizes == 0, 0.0, np.nan),
            "showscale": False,
            "colorscale": [[0, _css(ramps.masked)], [1, _css(ramps.masked)]],
            "hovertemplate": "%{text}: " + still + "<extra></extra>",
            **cell_options,
        }
    ]
    ticks = {top - k: f"10<sup>{top - k:.0f}</sup>" for k in (5, 3, 1)}
    data += [
        {
            "type": "heatmap",
            "z": np.where(mask, logs, np.nan),
            "colorscale": _scale(ramp),
            "customdata": sizes,
            **scale,
            **cell_options,
            "hovertemplate": "%{text}: %{customdata:" + DECIMALS + "}<extra></extra>",
            "colorbar": colour_legend(name, ticks, x=x, length=0.44),
        }
        for mask, ramp, name, x in ((is_before, ramps.negative, before, 0.0), (~is_before, ramps.positive, after, 0.5))
    ]
    frames = [
        {
            "type": "rect",
            "x0": token - 0.5,
            "x1": token + 0.5,
            "y0": 2 * i + 0.5,
            "y1": 2 * i + 1.5,
            "line": {"width": 2, "color": _css(ramps.positive[-1])},
        }
        for i in range(len(rows))
    ]
    indices = range(0, n, -(-n // _MAX_TICKS))
    return finish_rows(
        data,
        [strip.title for strip in rows],
        n,
        sizes=(_ROW, _HEAD, _FOOT),
        xaxis=axis(
            x_title,
            automargin=False,
            tickangle=-60,
            tickvals=list(indices),
            ticktext=[escape_label(labels[i], 9) for i in indices],
        ),
        shapes=frames,
    )


def _scale(ramp: Sequence[Colour]) -> list[list[object]]:
    # The first colour of a ramp (a list of colours) is the page's background. The scale starts a little later, so that
    # small changes stay visible.
    return [
        [i / 8, _css(colour)] for i, colour in enumerate(sample_ramp(ramp, np.linspace(0.35 / (len(ramp) - 1), 1, 9)))
    ]


def _css(colour: Sequence[float]) -> str:
    return "rgb({:.0f},{:.0f},{:.0f})".format(*colour)
