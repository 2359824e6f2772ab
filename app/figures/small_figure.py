"""A small line or bar chart for a card on a page, as HTML with an SVG picture, tick labels and names of series."""

import base64
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from unicodedata import east_asian_width

from app.figures.lines.line_names import spread_positions, wrap_name
from app.figures.theme import COLOURS, GREY, SERIES
from attention_core.formatting import MAX_INTEGER_DIGITS, format_readable, number

WIDTH, HEIGHT, EDGE = 240, 150, 8
"""Pixels: a picture's width before the page stretches it, a line chart's smallest height, half a tick's height."""
LINE = 16
"""Height of one line of text in a name, which is also the smallest height of a bar's row, in pixels."""
BAR = 6
"""Height in pixels of one of several bars side by side."""
CLOSE, WIDER = 2, 3
"""Pixels: the largest distance of lines that coincide on screen, and what a line gains for each line covering it."""
BREAK = 18
"""Height in pixels of the lowest part of an axis that does not begin at zero, which has a zigzag."""
MOST_STEPS = 10
"""Largest number of steps of an axis between its ends, which are multiples of a step."""
DOT = 9
"""Diameter in pixels of a dot."""
ROUND = f'stroke-width="{DOT}" stroke-linecap="round"'
"""Attributes that make a path of length 0 a dot. Unlike a circle, it stays round when the picture is stretched."""
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
    joined: bool = True,
    log_x: bool = False,
    log_y: bool = False,
    share: bool = False,
    include: float | None = None,
    alt: str = "",
) -> str | None:
    """Draw the median of each series at each position and return the chart as HTML; None if nothing can be drawn.

    Args:
        series: positions and values by name; points that a logarithmic axis cannot show are left out.
        x_title: name of the horizontal axis, with its unit; bars are horizontal and leave it out.
        y_title: name of the values, with their unit.
        colours: index of each series in the figures' shared colours; by default, in the order of ``series``.
        categories: names of the positions 0, 1, … of bars; empty for lines. Dots on a shorter axis replace bars if the
            values are not shares and the smallest value is more than half of the largest.
        subject: the category whose name and values are bold.
        joined: whether lines join the points of a series; ignored for bars.
        log_x: whether the horizontal axis is logarithmic; ignored for bars.
        log_y: whether the values are on a logarithmic axis.
        share: whether the values are shares from 0 to 1, which the chart shows in per cent.
        include: a value at or below which the axis begins; None to fit the values.
        alt: description of the picture.
    """
    medians = {name: _medians(points, log_x and not categories, log_y) for name, points in series.items()}
    heights = [y for line in medians.values() for _x, y in line]
    if not heights:
        return None
    colour_by_name = {name: SERIES[colours[name] if colours else i % COLOURS] for i, name in enumerate(medians)}
    # Bars from zero would hide small differences, so dots on a shorter axis show them. Shares, such as errors in per
    # cent, have bars, because nearly equal shares are a finding.
    dots = bool(categories) and not share and min(heights) > max(heights) / 2
    lowest = min(heights) if include is None else min(include, *heights)
    low, high = axis_range(lowest, max(heights), log=log_y, zero=bool(categories) and not dots)
    ticks = [_tick(100 * end if share else end) for end in (low, high)]
    if categories:
        return _bars(medians, colour_by_name, categories, subject, (low, high), ticks, log_y, share, dots, y_title, alt)
    return _lines(medians, colour_by_name, (low, high), ticks, joined, log_x, log_y, x_title, y_title, alt)


def axis_range(low: float, high: float, *, log: bool, zero: bool = False) -> tuple[float, float]:
    """Return both ends of an axis: round numbers at or beyond the smallest and the largest value.

    Args:
        low: the smallest value.
        high: the largest value.
        log: whether the axis is logarithmic.
        zero: whether bars need an end below ``low``: zero on a linear axis. Otherwise, a linear axis includes zero only
            if the values are equal or if ``low`` is from 0 to a third of ``high``.
    """
    if log:
        low, high = (low / 1.1, high) if zero else (low, high)  # The smallest value's bar needs a length above 0.
        low_decade, high_decade = (_decade(each) for each in (low, high))
        first = max(step * low_decade for step in (1, 2, 5) if step * low_decade <= low * (1 + 1e-9))
        last = min(step * high_decade for step in (1, 2, 5, 10) if step * high_decade >= high * (1 - 1e-9))
        return (first, last) if last > first else (first / 2, 2 * last)
    if zero or math.isclose(low, high) or 0 <= low <= high / 3:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 0.0, 1.0
    steps = (factor * _decade(high - low) for factor in (0.2, 0.5, 1))
    step = next(step for step in steps if (high - low) / step <= MOST_STEPS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return float(f"{first * step:.10g}"), float(f"{last * step:.10g}")


def _lines(
    medians: Mapping[str, Line],
    colours: Mapping[str, str],
    axis: tuple[float, float],
    ticks: Sequence[str],
    joined: bool,
    log_x: bool,
    log_y: bool,
    x_title: str,
    y_title: str,
    alt: str,
) -> str:
    """Return a chart of lines, or of points if not ``joined``, with names at the right in the order of their ends."""
    xs = sorted({x for line in medians.values() for x, _y in line})
    name_lines = {name: _wrap(name) for name, line in medians.items() if line}
    room = max(HEIGHT, sum(LINE * len(lines) for lines in name_lines.values()))
    x_pixel = _scale((xs[0], xs[-1]), (EDGE, WIDTH - EDGE), log=log_x)
    y_pixel = _scale(axis, (room - EDGE, EDGE), log=log_y)
    order = sorted(name_lines, key=lambda name: y_pixel(medians[name][-1][1]))
    sizes = [LINE * len(name_lines[name]) for name in order]
    centres = spread_positions([y_pixel(medians[name][-1][1]) for name in order], sizes, 0, room)
    assert centres is not None, "the room is at least the sum of the sizes"
    cut = "" if log_y or axis[0] <= 0 <= axis[1] else f"V{room - EDGE - BREAK}l4 3l-8 6l4 3"
    shapes = [f'<path d="M{EDGE} {EDGE}{cut}V{room - EDGE}H{WIDTH}" stroke="{SERIES[GREY]}" fill="none"/>']
    pixels = {name: [(x_pixel(x), y_pixel(y)) for x, y in medians[name]] for name in order}
    for i, name in enumerate(order):
        points = [f"{x:.1f} {y:.1f}" for x, y in pixels[name]]
        if joined and len(points) > 1:
            # If lines coincide, the later ones are thinner, so that all can be seen.
            wide = 2 + WIDER * sum(_coincide(pixels[name], pixels[other]) for other in order[i + 1 :])
            path, width = f"M{'L'.join(points)}", f'stroke-width="{wide}" stroke-linecap="round"'
        else:
            path, width = "".join(f"M{point}h0" for point in points), ROUND
        shapes.append(f'<path d="{path}" stroke="{colours[name]}" {width} fill="none"/>')
    tops = [centre - size / 2 for centre, size in zip(centres, sizes, strict=True)]
    gaps = [tops[0], *(b - a - size for (a, b), size in zip(pairwise(tops), sizes, strict=False))]
    names = "".join(
        f'<span style="margin-top:{gap:.1f}px">{_dot(colours[name])}{"<br>".join(map(_text, name_lines[name]))}</span>'
        for name, gap in zip(order, gaps, strict=True)
    )
    x_ticks = [_tick(x) for x in dict.fromkeys((xs[0], xs[-1]))]
    return (
        f'<span class="chart"><small>{_text(y_title)}</small>'
        f'<span class="ticks"><small>{ticks[1]}</small><small>{ticks[0]}</small></span>'
        f'{_image(shapes, room, alt)}<span class="names">{names}</span>'
        f'<span class="marks"><small>{x_ticks[0]}</small><small>{_text(x_title)}</small><small>{"".join(x_ticks[1:])}'
        "</small></span></span>"
    )


def _coincide(line: Line, other: Line) -> bool:
    """Return whether two lines in pixels have almost the same heights at the same places."""
    pairs = zip(line, other, strict=False)
    return len(line) == len(other) and all(a[0] == b[0] and abs(a[1] - b[1]) < CLOSE for a, b in pairs)


def _bars(
    medians: Mapping[str, Line],
    colours: Mapping[str, str],
    categories: Sequence[str],
    subject: str,
    axis: tuple[float, float],
    ticks: Sequence[str],
    log_y: bool,
    share: bool,
    dots: bool,
    y_title: str,
    alt: str,
) -> str:
    """Return a chart of horizontal bars as HTML, in ascending order of the first series.

    The names are to the left of the bars, and the values to the right.

    Bars begin at zero, or at the end of a logarithmic axis. With ``dots``, dots on a common line replace them.
    """
    one_series = list(medians) == list(categories)
    values = {
        i: [(name, y) for name, line in medians.items() for x, y in line if x == i] for i in range(len(categories))
    }
    order = sorted(values, key=lambda i: [y for _name, y in values[i][:1]])
    name_lines = [_wrap(categories[i]) for i in order]
    bars_height = 0 if one_series or dots else BAR * len(medians)
    rows = [max(LINE * len(lines), bars_height) + EDGE / 2 for lines in name_lines]
    x_pixel = _scale(axis, (EDGE if dots else 1, WIDTH - EDGE), log=log_y)
    baseline = 1 if dots else x_pixel(axis[0] if log_y else 0.0)
    bottom = sum(rows) + (EDGE if dots else 0)
    cut = f"M1 {bottom - 4:.1f}h6l3 -4l6 8l3 -4H{WIDTH}" if dots and not log_y else ""
    shapes = [f'<path d="M{baseline:.1f} 0V{sum(rows):.1f}{cut}" stroke="{SERIES[GREY]}" fill="none"/>']
    for i, (name, line) in enumerate(medians.items()):
        for x, y in line:
            row, size = order.index(int(x)), BAR if not one_series else LINE - EDGE / 2
            middle = sum(rows[:row]) + rows[row] / 2
            if dots:
                shapes.append(f'<path d="M{x_pixel(y):.1f} {middle:.1f}h0" stroke="{colours[name]}" {ROUND}/>')
                continue
            top = middle - size / 2 if one_series else middle + (i - len(medians) / 2) * BAR
            start, end = sorted((baseline, x_pixel(y)))
            shapes.append(
                f'<rect x="{start:.1f}" y="{top:.1f}" width="{max(end - start, 1):.1f}" height="{size - 1:.1f}" '
                f'fill="{colours[name]}"/>'
            )
    # Text in the unmixed colour of a series would have too little contrast.
    tints = {
        name: "" if one_series else f"color:color-mix(in srgb,{colours[name]} 60%,currentcolor)" for name in medians
    }
    styles = [
        f"height:{size:.1f}px" + (";font-weight:bold" if categories[i] == subject else "")
        for i, size in zip(order, rows, strict=True)
    ]
    names_html = "".join(
        f'<span style="{style}">{"<br>".join(map(_text, lines))}</span>'
        for lines, style in zip(name_lines, styles, strict=True)
    )
    texts = [
        " · ".join(
            f'<span style="{tints[name]}">{number(100 * y, 3) + "%" if share else number(y, 3)}</span>'
            for name, y in values[i]
        )
        for i in order
    ]
    values_html = "".join(f'<span style="{style}">{text}</span>' for text, style in zip(texts, styles, strict=True))
    legend = (
        ""
        if len(medians) == 1 or one_series
        else "".join(f"<span>{_dot(colours[name])}{_text(name)}</span>" for name in medians)
    )
    return (
        f'<span class="chart bars"><small>{_text(y_title)} {legend}</small><span class="names">{names_html}</span>'
        f'{_image(shapes, bottom, alt)}<span class="names">{values_html}</span>'
        f'<span class="marks"><small>{ticks[0]}</small><small>{ticks[1]}</small></span></span>'
    )


def _tick(value: float) -> str:
    """Format a round number, with as many digits as it has."""
    return number(value) if abs(value) >= 10**MAX_INTEGER_DIGITS else format_readable(value, None)


def _scale(values: tuple[float, float], pixels: tuple[float, float], *, log: bool) -> Callable[[float], float]:
    """Return a function that maps ``values`` to ``pixels``; equal values are mapped to the middle."""
    low, high = (math.log(values[0]), math.log(values[1])) if log else values

    def scale(value: float) -> float:
        share = ((math.log(value) if log else value) - low) / (high - low) if high > low else 0.5
        return pixels[0] + (pixels[1] - pixels[0]) * share

    return scale


def _decade(value: float) -> float:
    """Return the largest power of ten that is not larger than a positive value."""
    return 10.0 ** math.floor(math.log10(value) + 1e-9)


def _wrap(name: str) -> list[str]:
    wide = any(east_asian_width(character) in "FW" for character in name)
    return wrap_name(name, NAME) if wide else textwrap.wrap(name, NAME, break_on_hyphens=False)


def _dot(colour: str) -> str:
    return f'<i style="background:{colour}"></i>'


def _text(text: str) -> str:
    """Return a text with the characters escaped that HTML or Markdown read as markup."""
    return "".join(f"&#{ord(c)};" if c in "<>&\"'*_$`[]~:|\\" else c for c in text)


def _image(shapes: Iterable[str], height: float, alt: str) -> str:
    """Return an SVG picture as an HTML ``img`` that the page stretches to its width; lines keep their thickness."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.1f}" preserveAspectRatio="none">'
        f"<style>path{{vector-effect:non-scaling-stroke}}</style>{''.join(shapes)}</svg>"
    )
    address = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{_text(alt)}" style="height:{height:.1f}px" src="{address}">'


def _medians(points: Points, log_x: bool, log_y: bool) -> Line:
    """Return the median at each position, in ascending order, without points that a logarithmic axis cannot show."""
    values: dict[float, list[float]] = {}
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            values.setdefault(x, []).append(y)
    return [
        (x, y)
        for x, y in ((x, median(values[x])) for x in sorted(values))
        if (x > 0 or not log_x) and (y > 0 or not log_y)
    ]
