"""A heat map with a row per attention variant: how much each token's output changes when one token is replaced.

Changes before the replaced token, and changes from it on, have different colours; unchanged tokens are grey.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.figures.heat import colour_legend, finish_rows
from app.figures.theme import DARK, DECIMALS, LIGHT, Colour, Figure, axis, escape_label, sample_ramp

_START = 0.1
"""Position of the smallest change on the ramps; zero has the position 0, and the largest change 1."""
_MAX_TICKS, _MAX_TICKS_NARROW = 30, 14
"""Largest numbers of tokens named on the axis, evenly spaced, on a wide and on a narrow screen.

More would overlap. The tooltip names every token.
"""
_ROW, _HEAD, _FOOT = 42, 64, 96
"""Height in pixels of a strip with its title, of the colour scales above all strips, and of the axis below."""
_ROW_NARROW = 52
"""Height in pixels of a strip with its title on a narrow screen."""
_MAX_GAPS, _MAX_GAPS_NARROW = 128, 32
"""Largest numbers of tokens with gaps between their cells, on a wide and on a narrow screen."""
_MAX_DECADES = 3
"""Largest range of the colours, in decades, of which each decade has a tick."""


def strips(
    rows: Mapping[str, np.ndarray],
    token: int,
    labels: Sequence[str],
    *,
    span: tuple[float, float],
    dark: bool,
    narrow: bool,
    x_title: str,
    still: str,
    scale_titles: tuple[str, str],
) -> Figure:
    """Draw the strips over one axis of tokens.

    Args:
        rows: how much each token's output changes, ``[n]``, by the title of the strip, from top to bottom; zero for an
            unchanged output.
        token: index of the token that was replaced.
        labels: one label per token.
        span: changes at the start and at the end of the colours, which are logarithmic between them.
        dark: whether the page is dark.
        narrow: whether the screen is narrow.
        x_title: title of the axis.
        still: tooltip of unchanged tokens, which are grey.
        scale_titles: titles of the colour scales of changes before the replaced token, and from it on. Without such
            changes, the scale is left out.
    """
    ramps = DARK if dark else LIGHT
    n = len(labels)
    sizes = np.full((2 * len(rows), n), np.nan)  # The row above each strip stays empty, for the strip's title.
    sizes[1::2] = list(rows.values())
    with np.errstate(divide="ignore"):
        logs = np.where(sizes > 0, np.log10(sizes), np.nan)
    low, high = map(float, np.log10(span))
    is_before = np.arange(n) < token
    step = 1 if high - low <= _MAX_DECADES else 3 if narrow else 2
    ticks = {
        float(i): f"{10.0**i:.6f}".rstrip("0").rstrip(".") for i in range(math.ceil(low), math.floor(high) + 1, step)
    }
    starts, length = ((0.07, 0.57), 0.38) if narrow else ((0.02, 0.3), 0.2)
    names = [f"{i} “{escape_label(label)}”" for i, label in enumerate(labels)]
    cell_options = {
        "ygap": 0,
        "xgap": 1 if n <= (_MAX_GAPS_NARROW if narrow else _MAX_GAPS) else 0,
        "hoverongaps": False,
        "text": [names] * len(sizes),
    }
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
    data += [
        {
            "type": "heatmap",
            "z": np.where(mask, logs, np.nan),
            "colorscale": _scale(ramp),
            "customdata": sizes,
            "zmin": low,
            "zmax": high,
            "showscale": bool(np.isfinite(logs[:, mask]).any()),
            "colorbar": colour_legend(title, ticks, x=x, length=length),
            **cell_options,
            "hovertemplate": "%{text}: %{customdata:" + DECIMALS + "}<extra></extra>",
        }
        for mask, ramp, title, x in zip(
            (is_before, ~is_before), (ramps.negative, ramps.positive), scale_titles, starts, strict=True
        )
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
    indices = range(0, n, -(-n // (_MAX_TICKS_NARROW if narrow else _MAX_TICKS)))
    return finish_rows(
        data,
        list(rows),
        n,
        sizes=(_ROW_NARROW if narrow else _ROW, _HEAD, _FOOT),
        xaxis=axis(
            x_title,
            automargin=False,
            tickangle=-60,
            # On a wide screen, plotly would leave out the first token's name, although there is room for it.
            ticklabeloverflow="hide past div" if narrow else "allow",
            tickvals=list(indices),
            ticktext=[escape_label(labels[i], 9) for i in indices],
        ),
        shapes=frames,
    )


def _scale(ramp: Sequence[Colour]) -> list[list[object]]:
    # The first colour of a ramp (a list of colours) is the page's background. The scale starts a little later, so that
    # small changes stay visible.
    return [[i / 8, _css(colour)] for i, colour in enumerate(sample_ramp(ramp, np.linspace(_START, 1, 9)))]


def _css(colour: Sequence[float]) -> str:
    return "rgb({:.0f},{:.0f},{:.0f})".format(*colour)
