"""Placement of the lines' names in a line chart: at the ends of the lines, moved apart so that no two names overlap."""

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.figures.lines.text_placement import GAP
from app.figures.theme import GREY, Figure, annotation, style

LINE, LETTER, CHARACTER = 17, 7.4, 13
"""Height of a line of text, and widths of an average letter and of a Chinese character, in pixels."""
WIDE, WIDE_CHINESE = 19, 21
"""Largest number of letters per line of a name, without and with Chinese characters; each of these counts as two."""
DASH_SIGNS = {"dash": "╍\N{THIN SPACE}", "dot": "┅\N{THIN SPACE}", "dashdot": "╸·"}
"""Signs before the names of lines without markers, by dash, as wide as a marker; others have that of "dash"."""
GLYPH, SIGN = 11, 5
"""Height of the letters of a name, and half the width of a marker before it, in pixels."""
SAVE = 20
"""Pixels above the names reserved for the button that saves the picture."""
LEGEND = 24
"""Height in pixels of a line of the legend, which replaces the names on narrow screens."""
HALF = 18
"""Largest number of letters of a name in a legend with two columns; with longer names the legend has one column."""
NEAR = 0.06
"""Largest distance of a curve's end from its name, as a share of the axis, at which a line connects them."""
SAME = 4
"""Largest distance in pixels at which the ends of two lines count as the same place."""
BUNDLE = 3
"""Smallest number of lines with the same end for which one connecting line leads to all their names."""
NO_BREAK, BREAK = "\xa0", "\v"
"""Space at which a line cannot break, and an invisible character at which a Chinese line can break."""
CHINESE = re.compile(f"([一-鿿，：；、）])(?![，：；、）{NO_BREAK}]|.$)")
"""Pattern of a character after which a Chinese line can break.

It does not match before closing punctuation, before ``NO_BREAK``, and before the last character.
"""
INDENT = "<br>\N{EM SPACE}\N{HAIR SPACE}"
"""Break between two lines of a name; the marker is only before the first line."""
PREFIX = "→ "
"""Prefix of the names of annotations and shapes that belong to a line's name; the index of the trace follows."""
ALL = "*"
"""Suffix after ``PREFIX`` in the name of a shape that belongs to the names of several lines."""


@dataclass(frozen=True)
class End:
    """The name at the end of one line.

    Attributes:
        trace: index of the line among the figure's traces.
        name: text to write, in plotly's markup.
        colour: index in the shared series of colours.
        x: horizontal position of the line's end.
        y: vertical position of the line's end.
        hollow: whether the line's markers are open.
        dash: plotly's name of the dash of a line without markers; empty for a line with markers.
    """

    trace: int
    name: str
    colour: int
    x: float
    y: float
    hollow: bool = False
    dash: str = ""


def spread_positions(targets: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float] | None:
    """Return the positions nearest to the wanted ones (least squares) at which items of given sizes do not overlap.

    The items keep the order of the wanted positions. The method is isotonic regression (pooling of adjacent violators)
    of the wanted positions minus the sizes of the items before them.

    Args:
        targets: wanted middle of each item, in any order.
        sizes: size of each item.
        low: lower end of the available room.
        high: upper end of the available room.

    Returns:
        Middle of each item, in the given order; None if there is not enough room.
    """
    if sum(sizes) > high - low:
        return None
    order = sorted(range(len(targets)), key=lambda i: targets[i])
    length, offsets = 0.0, []
    for i in order:
        offsets.append(length + sizes[i] / 2)
        length += sizes[i]
    # An item's offset is its middle if all items touch and the first item begins at 0. Items that touch form a pool and
    # are shifted from their offsets by the same distance: the mean of ``target - offset``. For each pool, the list has
    # the sum of ``target - offset`` and the number of items.
    pools: list[tuple[float, int]] = []
    for i, offset in zip(order, offsets, strict=True):
        total, count = targets[i] - offset, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            total, count = total + pools[-1][0], count + pools[-1][1]
            pools.pop()
        pools.append((total, count))
    pooled = [total / count for total, count in pools for _i in range(count)]
    middles = [min(max(middle, low), high - length) + offset for middle, offset in zip(pooled, offsets, strict=True)]
    return [middle for _i, middle in sorted(zip(order, middles, strict=True))]


def wrap_name(name: str, chinese: int = WIDE_CHINESE) -> list[str]:
    """Return a name wrapped into lines; a number stays on the line of the word before it.

    A Chinese name breaks at a comma or bracket, otherwise at a space. It breaks between other characters only if
    this gives fewer lines.

    Args:
        name: the name.
        chinese: letters per line of a name with Chinese characters; each of these counts as two letters.
    """
    text = CHINESE.sub(rf"\1{BREAK}", re.sub(r" (?=-?\d)|(?<=\d) (?=[一-鿿])", NO_BREAK, name))
    width = chinese if BREAK in text else WIDE
    spaces = [match.start() for match in re.finditer(" ", text)]
    candidates = [*([text[:space], text[space + 1 :]] for space in reversed(spaces)), [text]]
    if len(parts := re.split("(?<=，)|(?=（)", text)) > 1:
        candidates.insert(0, parts)
    lines = min((_wrap_parts(parts, width) for parts in candidates), key=len)
    return [line.replace(BREAK, "").replace(NO_BREAK, " ") for line in lines] or [""]


def _wrap_parts(parts: Sequence[str], width: int) -> list[str]:
    """Wrap each part of a text to ``width`` letters per line, and return the lines of all parts."""
    wrap = textwrap.TextWrapper(width, break_long_words=False, replace_whitespace=False).wrap
    return [line for part in parts for line in wrap(part)]


def text_width(text: str) -> float:
    """Return the approximate width of a line of text in pixels."""
    return sum(CHARACTER if unicodedata.east_asian_width(each) in "WF" else LETTER for each in text)


def text_size(text: str) -> tuple[float, float]:
    """Return the approximate width and height of a text in pixels; ``<br>`` begins a new line."""
    lines = text.split("<br>")
    return max(map(text_width, lines)), LINE * len(lines)


def names_width(ends: Sequence[End]) -> int:
    """Return the pixels that the names take to the right of the lines."""
    return round(4 * LETTER + max(text_width(line) for end in ends for line in wrap_name(end.name)))


def place_names(
    ends: Sequence[End], *, left: float, right: float, low: float, high: float, height: float, log_x: bool, log_y: bool
) -> dict[str, Any] | None:
    """Return the names and the connecting lines to the curves as parts of a plotly layout; None if they do not fit.

    A curve that ends far from its name has no connecting line, which would cross the other curves.

    Args:
        ends: ends of the lines, as logarithms on a logarithmic axis.
        left: left end of the horizontal axis, as a logarithm on a logarithmic axis.
        right: right end of the horizontal axis, as a logarithm on a logarithmic axis.
        low: lower end of the vertical axis, as a logarithm on a logarithmic axis.
        high: upper end of the vertical axis, as a logarithm on a logarithmic axis.
        height: length of the vertical axis in pixels.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.
    """
    pixel = (high - low) / height
    sizes = [LINE * len(wrap_name(end.name)) * pixel for end in ends]
    middles = spread_positions(
        [min(max(end.y, low), high) for end in ends], sizes, low - 0.4 * LINE * pixel, high - SAVE * pixel
    )
    if middles is None:
        return None
    names = [_annotate(end, middle, above=end.y > high) for end, middle in zip(ends, middles, strict=True)]
    lines = []
    for bundle in _bundles(ends, SAME * pixel):
        end, first, last = ends[bundle[0]], middles[bundle[0]], middles[bundle[-1]]
        if right - end.x > NEAR * (right - left) or end.y > high:
            continue
        colour, name = end.colour, str(end.trace)
        segments = [(end.x, end.y, right, min(max(end.y, first), last))]
        if len(bundle) > 1:
            # Several lines end at the same place. One connecting line leads to a bracket along all their names, because
            # a connecting line to each name would look tangled.
            segments.append((right, first, right, last))
            colour, name = GREY, ALL
        lines += [_line(*xy, name=f"{PREFIX}{name}", colour=colour, log_x=log_x, log_y=log_y) for xy in segments]
    return {"annotations": names, "shapes": lines}


def _bundles(ends: Sequence[End], max_distance: float) -> list[list[int]]:
    """Return groups of indices into ``ends``: at least ``BUNDLE`` lines that end at the same place, or a single line.

    The indices of a group are in order of height, from below.

    Args:
        ends: ends of the lines.
        max_distance: largest vertical distance between two neighbours that end at the same place.
    """
    bundles: list[list[int]] = []
    for i in sorted(range(len(ends)), key=lambda i: (ends[i].x, ends[i].y)):
        last_end = ends[bundles[-1][-1]] if bundles else None
        if last_end is not None and last_end.x == ends[i].x and ends[i].y - last_end.y <= max_distance:
            bundles[-1].append(i)
        else:
            bundles.append([i])
    groups = [group for bundle in bundles for group in ([bundle] if len(bundle) >= BUNDLE else [[i] for i in bundle])]
    return sorted(groups, key=min)


def _line(
    x0: float, y0: float, x1: float, y1: float, *, name: str, colour: int, log_x: bool, log_y: bool
) -> dict[str, Any]:
    """Return a plotly shape: a dotted line between a curve and its name, because a solid line would look like data."""
    return {
        "name": name,
        "type": "line",
        "layer": "below",
        "x0": 10**x0 if log_x else x0,
        "x1": 10**x1 if log_x else x1,
        "y0": 10**y0 if log_y else y0,
        "y1": 10**y1 if log_y else y1,
        "line": {"color": style(colour).colour, "width": 1, "dash": "dot"},
        "opacity": 0.9,
    }


def _with_marker(end: End, *, after: bool = False) -> str:
    """Return a name with the marker or the dash of its line before it, or after it."""
    line_style = style(end.colour)
    sign = line_style.sign(hollow=end.hollow)
    if end.dash not in ("", "solid"):
        sign = DASH_SIGNS.get(end.dash, DASH_SIGNS["dash"])
    marker = f'<span style="color:{line_style.colour}">{sign}</span>'
    return f"{end.name} {marker}" if after else f"{marker} {end.name}"


def label_on_line(end: End, side: str) -> dict[str, Any]:
    """Return an annotation at a point of a line: its marker, with its name on one of ``text_placement.SIDES``."""
    is_left = side == "middle left"
    label = label_at_point(replace(end, name=_with_marker(end, after=is_left)), side)
    return label | {"xshift": SIGN if is_left else -SIGN}


def label_at_point(end: End, side: str) -> dict[str, Any]:
    """Return an annotation with a line's name next to a point, on one of ``text_placement.SIDES``."""
    vertical, horizontal = side.split()
    anchors: dict[str, Any] = {"xanchor": "center"}
    if horizontal != "center":
        anchors = {"xanchor": "left", "xshift": GAP} if horizontal == "right" else {"xanchor": "right", "xshift": -GAP}
    if vertical != "middle":
        above = vertical == "top"
        anchors |= {"yanchor": "bottom", "yshift": GAP} if above else {"yanchor": "top", "yshift": -GAP}
    return annotation(end.name, end.x, end.y, name=f"{PREFIX}{end.trace}", captureevents=True, **anchors)


def _annotate(end: End, y: float, *, above: bool) -> dict[str, Any]:
    """Return an annotation to the right of the chart, at height ``y``: marker, name and, if ``above``, an arrow.

    The arrow shows that the line ends above the axis.
    """
    properties = {"xref": "paper", "xanchor": "left", "yanchor": "middle", "align": "left", "captureevents": True}
    text = _with_marker(replace(end, name=INDENT.join(wrap_name(end.name)))) + " ▲" * above
    return annotation(text, 1, y, name=f"{PREFIX}{end.trace}", **properties)


def with_legend_below(figure: Figure) -> Figure:
    """Return the figure for narrow screens: with a legend below it instead of names at lines and text at points."""
    layout = figure["layout"]
    kept_parts = {
        part: [each for each in layout.get(part, ()) if not str(each.get("name", "")).startswith(PREFIX)]
        for part in ("annotations", "shapes")
    }
    if len(kept_parts["annotations"]) == len(layout.get("annotations", ())):
        return figure
    names = [trace.get("name", "") for trace in figure["data"] if trace.get("showlegend", True)]
    # All columns of the legend are as wide as its longest name.
    columns = 1 if any(len(name) > HALF for name in names) else 2
    # A guide (a reference line) has its name next to one of its points. Such a name may have several lines of text, and
    # each needs a row in the legend.
    guides = {i: trace["name"] for i, trace in enumerate(figure["data"]) if trace.get("name") in trace.get("text", ())}
    legend_height = LEGEND * (-(-len(names) // columns) + sum(name.count("<br>") + 1 for name in guides.values()))
    # The button that saves the picture was above the names to the right of the chart. Without them, the chart uses the
    # full width, and the button needs room above the chart.
    margin = {**layout["margin"], "r": 8, "t": max(layout["margin"].get("t", 0), SAVE + 8)}
    # Plotly makes the bottom margin at least as high as the legend. If text below the axis already fills the margin
    # (the margin is then above 8), the legend needs additional height.
    if margin["b"] > 8:
        margin["b"] += legend_height
    narrow_layout = {
        **layout,
        **kept_parts,
        "xaxis": {name: value for name, value in layout["xaxis"].items() if name != "dtick"},  # Labels would overlap.
        "showlegend": True,
        "legend": {"orientation": "h", "xref": "container", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom"},
        "margin": margin,
        "height": layout["height"] + legend_height,
    }
    # On a narrow screen, text next to a point may not fit or may cross other lines, so it is removed. The legend then
    # names the guide lines, which only this text named. A percentage at the end of such a name stays next to the
    # point, so that guides of the same style differ.
    data = []
    for i, trace in enumerate(figure["data"]):
        if share := re.search(r"(?<== )[^=]*%$", guides.get(i, "")):
            data.append(trace | {"text": [share[0] if text else "" for text in trace["text"]], "showlegend": True})
        else:
            shown = {"showlegend": True} if i in guides else {}
            data.append(trace | {"mode": trace["mode"].removesuffix("+text")} | shown)
    return {**figure, "data": data, "layout": narrow_layout}
