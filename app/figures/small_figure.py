"""A small figure without axes, as one SVG picture: lines or bars that show the shape of a result."""

import base64
import math
from collections.abc import Iterable, Mapping
from statistics import median

from app.figures.theme import COLOURS, GREY, SERIES

WIDTH, HEIGHT, EDGE = 160, 88, 5
"""Pixels of the picture, and of its empty margin."""
Points = Iterable[tuple[float, float]]


def small_figure(
    series: Mapping[str, Points],
    *,
    colours: Mapping[str, int] | None = None,
    bars: bool = False,
    log_x: bool = False,
    log_y: bool = False,
) -> str | None:
    """Draw the median of each series at each position and return a data URL; None if nothing can be drawn.

    Args:
        series: positions and values by name; points outside a logarithmic axis are left out.
        colours: indices in the shared series of colours, by the same names; by default, in their order.
        bars: whether to draw bars, side by side at each position, from zero or from the end of a logarithmic axis.
        log_x: whether the horizontal axis is logarithmic; ignored for bars.
        log_y: whether the vertical axis is logarithmic.
    """
    drawn = [_drawable(points, log_x=log_x and not bars, log_y=log_y) for points in series.values()]
    places = sorted({x for line in drawn for x, _y in line})
    heights = [y for line in drawn for _x, y in line]
    if not heights:
        return None
    low, high = min(heights), max(heights)
    if bars:  # Bars start below the smallest value or at zero, so that the smallest bar stays visible.
        low, high = (low - 0.1 * (high - low or 1.0), high) if log_y else (min(low, 0.0), max(high, 0.0))
    right, room = WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE

    def up(y: float) -> float:
        return HEIGHT - EDGE - room * ((y - low) / (high - low) if high > low else 0.5)

    def along(x: float) -> float:
        return EDGE + right * ((x - places[0]) / (places[-1] - places[0]) if len(places) > 1 else 0.5)

    parts = [f'<path d="M{EDGE} {HEIGHT - 1}H{WIDTH - EDGE}" stroke="{SERIES[GREY]}"/>']
    step = right / len(places)
    wide, foot = 0.8 * step / len(drawn), up(low if log_y else 0.0)
    for i, (name, line) in enumerate(zip(series, drawn, strict=True)):
        colour = SERIES[colours[name] if colours else i % COLOURS]
        if bars:
            for x, y in line:
                left = EDGE + step * (places.index(x) + 0.1) + wide * i
                top, end = sorted((up(y), foot))
                parts.append(
                    f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{max(end - top, 1):.1f}" '
                    f'fill="{colour}"/>'
                )
        elif len(line) == 1:
            [(x, y)] = line
            parts.append(f'<circle cx="{along(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>')
        elif line:
            path = "L".join(f"{along(x):.1f} {up(y):.1f}" for x, y in line)
            parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode("ascii")


def _drawable(points: Points, *, log_x: bool, log_y: bool) -> list[tuple[float, float]]:
    """Return the medians in order of position, with the logarithm of each logarithmic axis."""
    at: dict[float, list[float]] = {}
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            at.setdefault(x, []).append(y)
    return [
        (math.log(x) if log_x else x, math.log(y) if log_y else y)
        for x, y in ((x, median(at[x])) for x in sorted(at))
        if (x > 0 or not log_x) and (y > 0 or not log_y)
    ]
