"""A small chart for a card: lines or bars as an SVG picture, with axis names, two ticks per axis and names in HTML."""

import base64
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from unicodedata import east_asian_width

from app.figures.lines.ends import wrap_name
from app.figures.theme import COLOURS, GREY, SERIES
from attention_core.formatting import MAX_INTEGER_DIGITS, format_readable, number

WIDTH, HEIGHT, EDGE = 240, 120, 8
"""Width of a picture, which the page stretches, smallest height of lines in pixels, and half a tick's height."""
LINE = 16
"""Height in pixels of a line of a name, and the smallest height of a bar's row."""
BAR = 6
"""Height in pixels of one of several bars side by side."""
DOT = 9
"""Diameter in pixels of a dot."""
NAME = 16
"""Largest number of Latin characters in a line of a name."""
Points = Iterable[tuple[float, float]]
Line = list[tuple[float, float]]


def small_figure(
    series: Mapping[str, Points],
    *,
    x_title: str,
    y_title: str,
    colours: Mapping[str, int] | None = None,
    categories: Sequence[str] = (),
    subject: str = "",
    log_x: bool = False,
    log_y: bool = False,
    share: bool = False,
    alt: str = "",
) -> str | None:
    """Draw the median of each series at each position and return the chart as HTML; None if nothing can be drawn.

    Args:
        series: positions and values by name; points outside a logarithmic axis are left out.
        x_title: name of the horizontal axis, with its unit; bars are horizontal and leave it out.
        y_title: name of the values, with their unit.
        colours: indices in the shared series of colours, by the same names; by default, in their order.
        categories: names of the positions 0, 1, … of bars; empty for lines. Bars of similar lengths become dots.
        subject: the category whose name and values are bold.
        log_x: whether the horizontal axis is logarithmic; ignored for bars.
        log_y: whether the values are on a logarithmic axis.
        share: whether the values are shares from 0 to 1, whose ticks are percentages.
        alt: description of the picture.
    """
    drawn = {name: _drawable(points, log_x and not categories, log_y) for name, points in series.items()}
    heights = [y for line in drawn.values() for _x, y in line]
    if not heights:
        return None
    paint = {name: SERIES[colours[name] if colours else i % COLOURS] for i, name in enumerate(drawn)}
    dots = bool(categories) and not log_y and min(heights) > max(heights) / 2
    low, high = ends(min(heights), max(heights), log=log_y, zero=bool(categories) and not dots)
    ticks = [_tick(100 * each) + "%" if share else _tick(each) for each in (low, high)]
    if categories:
        return _bars(drawn, paint, categories, subject, (low, high), ticks, log_y, dots, share, y_title, alt)
    return _lines(drawn, paint, (low, high), ticks, log_x, log_y, x_title, y_title, alt)


def ends(low: float, high: float, *, log: bool, zero: bool = False) -> tuple[float, float]:
    """Return round numbers at or beyond the smallest and the largest value, at which an axis ends.

    Args:
        low: the smallest value.
        high: the largest value.
        log: whether the axis is logarithmic.
        zero: whether a linear axis must include zero; otherwise it does so if that costs little room.
    """
    if log:
        low, high = (low / 1.1, high) if zero else (low, high)  # the smallest bar stays visible
        below, above = (_decade(each) for each in (low, high))
        first = max(step * below for step in (1, 2, 5) if step * below <= low * (1 + 1e-9))
        last = min(step * above for step in (1, 2, 5, 10) if step * above >= high * (1 - 1e-9))
        return (first, last) if last > first else (first / 2, 2 * last)
    if zero or low == high or 0 <= low <= high / 3:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 0.0, 1.0
    step = _decade(high - low) / 5
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return float(f"{first * step:.10g}"), float(f"{last * step:.10g}")


def spread(wanted: Sequence[float], sizes: Sequence[float], room: float) -> list[float]:
    """Return the centres of labels, as close to the wanted ones as they can be without overlap, in the same order.

    Args:
        wanted: the wanted centres, from 0 to ``room``, in ascending order.
        sizes: the labels' heights.
        room: the available height, at least the sum of the sizes.
    """
    tops = [0.0] * len(wanted)
    bottom = 0.0
    for i, (centre, size) in enumerate(zip(wanted, sizes, strict=True)):
        tops[i] = bottom = max(bottom, centre - size / 2)
        bottom += size
    limit = room
    for i in reversed(range(len(tops))):
        limit = tops[i] = min(tops[i], limit - sizes[i])
    return [top + size / 2 for top, size in zip(tops, sizes, strict=True)]


def _lines(
    drawn: Mapping[str, Line],
    paint: Mapping[str, str],
    axis: tuple[float, float],
    ticks: Sequence[str],
    log_x: bool,
    log_y: bool,
    x_title: str,
    y_title: str,
    alt: str,
) -> str:
    """Return a chart of lines, with their names at the right in the order of their ends."""
    places = sorted({x for line in drawn.values() for x, _y in line})
    named = {name: _wrapped(name) for name, line in drawn.items() if line}
    room = max(HEIGHT, sum(LINE * len(lines) for lines in named.values()))
    across = _scale((places[0], places[-1]), (EDGE, WIDTH - EDGE), log=log_x)
    up = _scale(axis, (room - EDGE, EDGE), log=log_y)
    order = sorted(named, key=lambda name: up(drawn[name][-1][1]))
    sizes = [LINE * len(named[name]) for name in order]
    centres = spread([up(drawn[name][-1][1]) for name in order], sizes, room)
    parts = [f'<path d="M{EDGE} {EDGE}V{room - 1}H{WIDTH}" stroke="{SERIES[GREY]}" fill="none"/>']
    for name in order:
        points = [f"{across(x):.1f} {up(y):.1f}" for x, y in drawn[name]]
        # A round end makes a dot that is not stretched.
        end, thickness = ("h0", DOT) if len(points) == 1 else ("", 2)
        look = f'stroke="{paint[name]}" stroke-width="{thickness}" stroke-linecap="round" fill="none"'
        parts.append(f'<path d="M{"L".join(points)}{end}" {look}/>')
    tops = [centre - size / 2 for centre, size in zip(centres, sizes, strict=True)]
    gaps = [tops[0], *(b - a - size for (a, b), size in zip(pairwise(tops), sizes, strict=False))]
    names = "".join(
        f'<span style="margin-top:{gap:.1f}px">{_dot(paint[name])}{"<br>".join(map(_text, named[name]))}</span>'
        for name, gap in zip(order, gaps, strict=True)
    )
    marks = [_tick(place) for place in dict.fromkeys((places[0], places[-1]))]
    return (
        f'<span class="chart"><small>{_text(y_title)}</small>'
        f'<span class="ticks"><small>{ticks[1]}</small><small>{ticks[0]}</small></span>'
        f'{_image(parts, room, alt)}<span class="names">{names}</span>'
        f'<span class="marks"><small>{marks[0]}</small><small>{_text(x_title)}</small><small>{"".join(marks[1:])}'
        "</small></span></span>"
    )


def _bars(
    drawn: Mapping[str, Line],
    paint: Mapping[str, str],
    categories: Sequence[str],
    subject: str,
    axis: tuple[float, float],
    ticks: Sequence[str],
    log_y: bool,
    dots: bool,
    share: bool,
    y_title: str,
    alt: str,
) -> str:
    """Return a chart of horizontal bars between their names and their values, in ascending order of the first series.

    Bars begin at zero, or at the end of a logarithmic axis. Values that differ little are dots (``dots``), whose axis
    begins near the smallest value.
    """
    alone = list(drawn) == list(categories)
    values = {i: [(name, y) for name, line in drawn.items() for x, y in line if x == i] for i in range(len(categories))}
    order = sorted(values, key=lambda i: [y for _name, y in values[i][:1]])
    named = [_wrapped(categories[i]) for i in order]
    rows = [max(LINE * len(lines), 0 if alone or dots else BAR * len(drawn)) + EDGE / 2 for lines in named]
    along = _scale(axis, (EDGE if dots else 1, WIDTH - EDGE), log=log_y)
    foot = 1.0 if dots else along(axis[0] if log_y else 0.0)
    parts = [f'<path d="M{foot:.1f} 0V{sum(rows):.1f}" stroke="{SERIES[GREY]}"/>']
    for i, (name, line) in enumerate(drawn.items()):
        for x, y in line:
            row, size = order.index(int(x)), BAR if not alone else LINE - EDGE / 2
            middle = sum(rows[:row]) + rows[row] / 2
            if dots:
                place = f'd="M{along(y):.1f} {middle:.1f}h0"'  # A round end makes a dot that is not stretched.
                parts.append(f'<path {place} stroke="{paint[name]}" stroke-width="{DOT}" stroke-linecap="round"/>')
                continue
            top = middle - size / 2 if alone else middle + (i - len(drawn) / 2) * BAR
            start, end = sorted((foot, along(y)))
            parts.append(
                f'<rect x="{start:.1f}" y="{top:.1f}" width="{max(end - start, 1):.1f}" height="{size - 1:.1f}" '
                f'fill="{paint[name]}"/>'
            )
    # Text in a series' own colour would have too little contrast.
    tints = {name: "" if alone else f"color:color-mix(in srgb,{paint[name]} 60%,currentcolor)" for name in drawn}
    looks = [
        f"height:{size:.1f}px" + (";font-weight:bold" if categories[i] == subject else "")
        for i, size in zip(order, rows, strict=True)
    ]
    names = "".join(
        f'<span style="{look}">{"<br>".join(map(_text, lines))}</span>'
        for lines, look in zip(named, looks, strict=True)
    )
    texts = [
        " · ".join(
            f'<span style="{tints[name]}">{number(100 * y, 3) + "%" if share else number(y, 3)}</span>'
            for name, y in values[i]
        )
        for i in order
    ]
    sizes = "".join(f'<span style="{look}">{text}</span>' for text, look in zip(texts, looks, strict=True))
    legend = "" if alone else "".join(f"<span>{_dot(paint[name])}{_text(name)}</span>" for name in drawn)
    return (
        f'<span class="chart bars"><small>{_text(y_title)} {legend}</small><span class="names">{names}</span>'
        f'{_image(parts, sum(rows), alt)}<span class="names">{sizes}</span>'
        f'<span class="marks"><small>{ticks[0]}</small><small>{ticks[1]}</small></span></span>'
    )


def _tick(value: float) -> str:
    """Format a round number, with as many digits as it has."""
    return number(value) if abs(value) >= 10**MAX_INTEGER_DIGITS else format_readable(value, None)


def _scale(values: tuple[float, float], pixels: tuple[float, float], *, log: bool) -> Callable[[float], float]:
    """Return the function from a value to its pixel, with both ends given; equal values are in the middle."""
    low, high = (math.log(values[0]), math.log(values[1])) if log else values

    def scale(value: float) -> float:
        share = ((math.log(value) if log else value) - low) / (high - low) if high > low else 0.5
        return pixels[0] + (pixels[1] - pixels[0]) * share

    return scale


def _decade(value: float) -> float:
    """Return the largest power of ten that is not larger than a positive value."""
    return 10.0 ** math.floor(math.log10(value) + 1e-9)


def _wrapped(name: str) -> list[str]:
    """Return the lines of a name."""
    wide = any(east_asian_width(sign) in "FW" for sign in name)
    return wrap_name(name, NAME) if wide else textwrap.wrap(name, NAME, break_on_hyphens=False)


def _dot(colour: str) -> str:
    return f'<i style="background:{colour}"></i>'


def _text(text: str) -> str:
    """Return a text in which neither HTML nor Markdown finds markup."""
    return "".join(f"&#{ord(sign)};" if sign in "<>&\"'*_$`[]~:|\\" else sign for sign in text)


def _image(parts: Iterable[str], height: float, alt: str) -> str:
    """Return a picture that the page stretches to its width; lines keep their thickness."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.1f}" preserveAspectRatio="none">'
        f"<style>path{{vector-effect:non-scaling-stroke}}</style>{''.join(parts)}</svg>"
    )
    address = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{_text(alt)}" style="height:{height:.1f}px" src="{address}">'


def _drawable(points: Points, log_x: bool, log_y: bool) -> Line:
    """Return the medians in order of position, without values that are not on a logarithmic axis."""
    at: dict[float, list[float]] = {}
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            at.setdefault(x, []).append(y)
    return [
        (x, y) for x, y in ((x, median(at[x])) for x in sorted(at)) if (x > 0 or not log_x) and (y > 0 or not log_y)
    ]
