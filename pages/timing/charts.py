"""The charts of the Timing page: time by number of tokens, and next to it memory, multiply-adds or relative time."""

import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from app.figures.lines import line_names
from app.figures.lines.curve import Curve
from app.figures.lines.curves import AXIS_HEIGHT, MARKER, RING, WIDTH, curves
from app.figures.lines.machine_stamp import add_machine_stamp
from app.figures.lines.text_placement import Box, Path
from app.figures.theme import GREY, PAGE, SERIES, Figure, add_line, annotation, style
from app.ui import chart
from app.words.i18n import N_, _
from app.words.labels import axis_title
from app.words.measured_times import Series, stamp_lines
from attention_core.benchmarking.run_records import Run
from attention_core.benchmarking.run_summary import Overtaking, overtaking
from attention_core.experiments.timing_length import unfinished
from attention_core.formatting import format_interpolated
from pages.timing.memory import call_bytes, memory_unit
from pages.timing.words import speedup

HEIGHT = 350
"""Height in pixels of a chart, without the stamp (machine and date) below the chart.

With the sentence above it, the chart fits a projector's screen.
"""
NARROW_WIDTH = 250
"""Width in pixels of the area with the lines on a phone."""
NARROW_TICKS = 7
"""Largest number of lengths that fit below the chart on a phone."""
LEADERS = tuple((across, down) for down in (8, 24, 40) for across in (24, 72, 120))
"""Pixels right or left of a ring, and above or below it, at which its label can begin, the preferred ones first."""
CORNERS = ((0, 1), (1, 0), (1, 1), (0, 0))
"""Corners of a chart where a text can be, the preferred one first: 0 or 1 for left or right, and for low or high."""
MAX_LABELLED = 4
"""Largest number of rings with labels; more labels would cover lines and each other."""
NEAR_RATIO = 1.5
"""Ratio of two lengths up to which their labels would overlap."""
ONE_LINE = 22
"""Largest number of letters of a name at a curve's end that is on one line."""
BRACKET_POSITION = 0.95
"""Horizontal position of the bracket that marks the speedup, as a fraction of the longest length."""
TITLES = {
    "ratio": N_("Time relative to softmax"),
    "memory": N_("Peak memory of one call"),
    "work": N_("Multiply-adds of one call"),
}
"""Titles of the charts that can be shown next to the time chart."""


def _crossings(series: Sequence[Series]) -> list[tuple[Series, Overtaking]]:
    """Return the variants that become faster than softmax, and where."""
    return [(line, at) for line in series if not line.masked and (at := overtaking(line.run, line.word))]


def crossovers(series: Sequence[Series]) -> list[Curve]:
    """Return one curve per variant with a single ring, at the length from which it is faster than softmax."""
    return [
        Curve(
            _("{name}: becomes faster than softmax", name=line.name),
            [crossing.tokens],
            [crossing.ms],
            colour=line.colour,
            dash="solid" if line.live else "dash",
            group=line.name,
            hollow=True,
            size=RING,
            name_at_end=False,
            notes=[crossover_text(line.name, crossing)],
        )
        for line, crossing in _crossings(series)
    ]


def label_crossings(figure: Figure, series: Sequence[Series], *, narrow: bool = False) -> None:
    """Write next to the rings of ``crossovers`` from which length each variant is faster than softmax.

    A short line joins each label and its ring. The label hides the grid lines behind it. On a phone, one list in a
    corner has all labels. If there are too many rings, one text above the lines explains them all.

    Args:
        figure: the time chart.
        series: the timed variants on the page.
        narrow: whether the chart is on a phone.
    """
    crossings = sorted(_crossings(series), key=lambda each: each[1].tokens)
    sizes = sorted(point.n for line in series for point in line.points)
    paths = [_pixels([(p.n, p.quartiles[1]) for p in line.points], series, narrow=narrow) for line in series]
    rings = _pixels([(at.tokens, at.ms) for _line, at in crossings], series, narrow=narrow)
    annotations = figure["layout"].setdefault("annotations", [])
    entries = [(at.tokens, line.name.partition(" · ")[0], line.colour) for line, at in crossings]
    if len(crossings) > MAX_LABELLED:
        annotations.append(_corner_text(_("○ faster than softmax from here on"), []))
        return
    if narrow and entries:
        lines = [f"{_dot(colour)}{name} ≈ {format_interpolated(n)}" for n, name, colour in entries]
        text = "<br>".join(dict.fromkeys([_("○ faster than softmax from"), *lines]))
        annotations.append(_corner_text(text, paths))
        return
    labels = crossing_labels(entries)
    first = next(filter(None, labels), "")
    for text, (_line, at), ring in zip(labels, crossings, rings, strict=True):
        if not text:
            continue
        is_below = _is_below(text, at.tokens, sizes, is_first=text == first)
        side = 1 if is_below else -1
        leader = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": SERIES[GREY], "standoff": RING / 2}
        across, down = _leader(text, ring, paths, side, _size(narrow=False))
        place: dict[str, object] = {"ax": across * side, "ay": down * side, "align": "left"}
        place |= {"xanchor": "left", "yanchor": "top"} if is_below else {"xanchor": "right", "yanchor": "bottom"}
        mark = annotation(text, math.log10(at.tokens), math.log10(at.ms), **leader, **place, bgcolor=PAGE)
        annotations.append(mark)


def _corner_text(text: str, paths: Sequence[Path]) -> dict[str, Any]:
    """Return an annotation for a corner of a phone's chart where no line crosses the text.

    If there is no such corner, it is the upper left one.

    Args:
        text: the text, as HTML.
        paths: the lines in pixels.
    """
    width, height = _text_size(text)
    right, top = (size - needed for size, needed in zip(_size(narrow=True), (width, height), strict=True))

    def is_free(corner: tuple[int, int]) -> bool:
        left, low = corner[0] * right, corner[1] * top
        return not any(map(Box(left, low, left + width, low + height).is_crossed, paths))

    x, y = next(filter(is_free, CORNERS), CORNERS[0])
    anchors = {"xanchor": ("left", "right")[x], "yanchor": ("bottom", "top")[y], "align": "left"}
    return annotation(text, x, y, xref="x domain", yref="y domain", **anchors, bgcolor=PAGE)


def _dot(colour: int) -> str:
    """Return a dot in the colour of a variant, and a space, as HTML."""
    return f'<span style="color:{style(colour).colour}">●</span> '


def _text_size(text: str) -> tuple[float, float]:
    """Return the approximate width and height in pixels of a text with dots, as HTML."""
    return line_names.text_size(re.sub("<span.*?>|</span>", "", text))


def _pixels(
    places: Sequence[tuple[float, float]], series: Sequence[Series], *, narrow: bool
) -> list[tuple[float, float]]:
    """Return lengths and times as places in pixels, from the left and from below, on a chart of typical size."""
    points = [(math.log10(point.n), math.log10(point.quartiles[1])) for line in series for point in line.points]
    ends = [(min(values), max(values)) for values in zip(*points, strict=True)]
    return [
        tuple(
            (math.log10(value) - low) / (high - low or 1.0) * size
            for value, (low, high), size in zip(place, ends, _size(narrow=narrow), strict=True)
        )
        for place in places
    ]


def _size(*, narrow: bool) -> tuple[float, float]:
    """Return the width and the height in pixels of the area with the lines on a chart of typical size."""
    return (NARROW_WIDTH if narrow else WIDTH, HEIGHT - AXIS_HEIGHT)


def _leader(
    text: str, ring: tuple[float, float], paths: Sequence[Path], side: int, size: tuple[float, float]
) -> tuple[int, int]:
    """Return the first of ``LEADERS`` at which a label covers no measured point, and no line if there is such a place.

    If no place is free within the area with the lines, return the first of ``LEADERS``.

    Args:
        text: the label, as HTML.
        ring: the ring in pixels, from the left and from below.
        paths: the lines in pixels.
        side: 1 for a label below and to the right of its ring, -1 for one above and to the left.
        size: width and height of the area with the lines in pixels.
    """
    width, height = _text_size(text)
    points = [Box(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for path in paths for x, y in path]
    free = []
    for across, down in LEADERS:
        x, y = ring[0] + side * across, ring[1] - side * down
        box = Box(x, y - height, x + width, y) if side > 0 else Box(x - width, y, x, y + height)
        is_inside = box.left >= 0 and box.low >= 0 and box.right <= size[0] and box.high <= size[1]
        if is_inside and not any(map(box.overlaps, points)):
            free.append((any(map(box.is_crossed, paths)), LEADERS.index((across, down))))
    return LEADERS[min(free)[1]] if free else LEADERS[0]


def _is_below(text: str, tokens: float, sizes: Sequence[int], *, is_first: bool) -> bool:
    """Return whether a label of ``label_crossings`` is below and to the right of its ring.

    It is there if it has no room above and to the left. The first label is also there if it is in the left half,
    where a label above the ring would cover the line of a variant that is slow at short lengths.

    Args:
        text: the label, as HTML.
        tokens: the length at the ring.
        sizes: the measured lengths, ascending.
        is_first: whether this is the first label from the left.
    """
    share = math.log(tokens / sizes[0]) / math.log(sizes[-1] / sizes[0])
    width = max(map(line_names.text_width, re.sub("<span.*?</span> ", "", text).split("<br>")))
    return width > share * WIDTH or (is_first and share < 0.5)


def crossing_labels(crossings: Sequence[tuple[float, str, int]]) -> list[str]:
    """Return the label at each crossing (the length from which a variant is faster than softmax), as HTML for Plotly.

    Each variant has one line of text, with a dot in its colour. Labels of neighbouring crossings would overlap, so
    the last of them has the text of all, and the labels of the others are empty.

    Args:
        crossings: the length, the variant's short name and its colour, by ascending length.
    """
    near, texts = list[tuple[float, str, int]](), list[str]()
    for crossing, following in zip_longest(crossings, crossings[1:]):
        near.append(crossing)
        if following is not None and following[0] <= NEAR_RATIO * crossing[0]:
            texts.append("")
            continue
        lines = [
            _dot(colour) + _("{names}: faster from ≈ {n}", names=name, n=format_interpolated(n))
            for n, name, colour in near
        ]
        texts.append("<br>".join(dict.fromkeys(lines)))
        near = []
    return texts


def crossover_text(name: str, overtaking: Overtaking) -> str:
    """Return a marker's tooltip: where a variant becomes faster than softmax, and both times at the nearest lengths."""
    sentences = [
        _("{n:,} tokens: {own:.3g} ms, softmax {full:.3g} ms", n=n, own=variant_time, full=softmax_time)
        for n, variant_time, softmax_time in (overtaking.before, overtaking.after)
    ]
    return "<br>".join(
        [
            _(
                "{name} becomes faster than softmax at about {n} tokens",
                name=name,
                n=format_interpolated(overtaking.tokens),
            ),
            *sentences,
        ]
    )


def side_lines(side: str, series: Sequence[Series]) -> list[Curve]:
    """Return the curves of the chart ``side``, a key of ``TITLES``, next to the time chart."""
    if side == "ratio":
        return [
            curve(line, [(r.n, r.low, r.middle, r.high) for r in line.ratios], series)
            for line in series
            if line.ratios and not line.is_reference
        ]
    unit = memory_unit(series)[0]

    def values(line: Series) -> dict[int, float]:
        if side == "memory":
            return {n: size / unit for n, size in call_bytes(line).items()}
        return {point.n: point.multiply_adds for point in line.points}

    return [curve(line, [(n, y, y, y) for n, y in values(line).items()], series) for line in series]


def side_title(side: str, series: Sequence[Series]) -> str:
    """Return the title of the vertical axis of the chart ``side``, a key of ``TITLES``."""
    titles = {"ratio": _("time ÷ softmax's time (median)"), "memory": memory_unit(series)[1]}
    return titles.get(side) or _("multiply-adds of one call")


def curve(line: Series, values: Sequence[tuple[float, float, float, float]], series: Sequence[Series]) -> Curve:
    """Return a variant's curve.

    It is dotted for a mask on the full matrix. A recorded run has hollow markers, and dashes if there is a live run.

    Args:
        line: the variant in one run.
        values: the length, and the lower edge of the band, the value and the upper edge at this length.
        series: all series on the page.
    """
    solid = {other.name for other in series if other.live}
    x, low, middle, high = zip(*values, strict=True)
    # If two runs are drawn, only the run on this machine ("live") has bands, because the bands of both would overlap.
    has_band = low != high and (line.live or not solid)
    dash = ("dot", "dashdot") if line.masked else ("solid", "dash")
    return Curve(
        line.name,
        x,
        [y or None for y in middle],
        low=low if has_band else None,
        high=high if has_band else None,
        colour=line.colour,
        dash=dash[bool(solid) and not line.live],
        group=line.name,
        name_at_end=line.live or line.name not in solid,
        label=end_name(line),
        hollow=not line.live,
    )


def end_name(line: Series) -> str:
    """Return the label at a curve's end: the variant with its settings, and "so far" if its run is not complete."""
    title = _("{name} (fused\N{NO-BREAK SPACE}kernel)", name=line.name) if line.is_reference else line.name
    title = title.replace(" ", line_names.NO_BREAK) if len(title) <= ONE_LINE else title
    return _("{name}, so far", name=title) if unfinished(line.run) else title


def mark_speedup(figure: Figure, series: Sequence[Series]) -> None:
    """Add a bracket to the time chart that marks how many times as fast as softmax the variants are (``speedup``).

    At the longest length, it extends from softmax's time to the fastest variant's. A tick marks the slowest variant.
    """
    factors, softmax = speedup(series), next((line for line in series if line.is_reference), None)
    if factors is None or softmax is None:
        return
    n, lowest, highest = factors
    times = [line.points[-1].quartiles[1] for line in series if not line.is_reference and not line.masked]
    top, x, tick = softmax.points[-1].quartiles[1], n * BRACKET_POSITION, n * BRACKET_POSITION**0.5
    path = f"M{tick} {top}L{x} {top}L{x} {min(times)}L{tick} {min(times)}M{x} {max(times)}L{tick} {max(times)}"
    shape = {"type": "path", "path": path, "line": {"color": SERIES[GREY], "width": 1}}
    figure["layout"].setdefault("shapes", []).append(shape)
    names = [line.name for line in series if not line.is_reference and not line.masked]
    text = _("{name}: {most} times as fast as softmax", name=names[0], most=highest)
    if len(names) > 1:
        text = _("variants: {most} times as fast as softmax", most=highest)
    if lowest != highest:
        text = _("variants: {least} to {most} times as fast as softmax", least=lowest, most=highest)
    # On a logarithmic axis, Plotly positions annotations by the logarithm of a value, and shapes by the value
    # itself. The text is above and to the left of the bracket's upper end, which is at softmax's time. No line is
    # there: softmax takes the longest, and its time rises with the length.
    mark = annotation(text, math.log10(x), math.log10(top), xanchor="right", yanchor="bottom", bgcolor=PAGE)
    figure["layout"].setdefault("annotations", []).append(mark)


def _rounds(series: Sequence[Series], *, live: bool) -> list[str]:
    """Return, as a list, the text about the number of rounds of a run."""
    counts = [len(point.ms) for line in series if line.live == live for point in line.points]
    if not counts:
        return []
    least, most = min(counts), max(counts)
    if most == 1:
        return [_("1 round")]
    return [_("medians of {n} rounds", n=most) if least == most else _("medians of at least {n} rounds", n=least)]


def show_chart(
    lines: list[Curve], unit: str, runs: Sequence[tuple[Run, bool]], series: Sequence[Series], key: str, name: str
) -> None:
    """Draw a chart of one or two runs.

    Below the time chart, and below each chart of two runs, a stamp names the machine and the date of each run.

    Args:
        lines: the curves.
        unit: title of the vertical axis.
        runs: each run, and whether it was made on this machine in this session.
        series: the timed variants on the page.
        key: key of the element.
        name: "time", or one of ``TITLES``.
    """
    sizes = sorted({point.n for line in series for point in line.points})
    step = 2 if chart.is_narrow() and len(sizes) > NARROW_TICKS else 1
    decodes = series[0].run.spec.mode == "decode"
    figure = curves(
        lines,
        x_title=axis_title(_("tokens in the cache") if decodes else _("tokens n"), log=True),
        y_title=axis_title(unit, log=True),
        log_x=True,
        log_y=True,
        x_ticks=sizes[::-step][::-1],  # The last length always has a tick.
        height=HEIGHT,
    )
    figure["layout"]["xaxis"]["ticklabeloverflow"] = "allow"  # A phone would drop the label of the last length.
    if name == "ratio":
        add_line(figure, y=1.0, color=SERIES[GREY], width=1.5, dash="dot")
        # The label of the ratio 1 is at the left or right end, where the nearest curve is farther away.
        first, last = (min(abs(math.log(line.y[i] or 1.0)) for line in lines if line.y) for i in (0, -1))
        is_right = last > first
        place = {"xref": "x domain", "xanchor": "right" if is_right else "left", "yanchor": "top"}
        below = annotation(_("↓ faster than softmax"), float(is_right), math.log10(1.0), **place)
        figure["layout"].setdefault("annotations", []).append(below)
    one_run = len({line.live for line in series}) == 1
    if name == "time":
        label_crossings(figure, series, narrow=chart.is_narrow())
        if one_run and not chart.is_narrow():
            mark_speedup(figure, series)
    if name == "time" or not one_run:  # Only the stamp says which run has dashed lines.
        stamps = [[*stamp_lines(run, live=live, only_run=one_run), *_rounds(series, live=live)] for run, live in runs]
        figure = add_machine_stamp(figure, stamps, narrow=chart.is_narrow())
    text = _("Lines: {what} against the number of tokens", what=_(TITLES.get(name, N_("Time of one call"))))
    chart.show(figure, key=key, name=f"timing-{name}", alt=text)
