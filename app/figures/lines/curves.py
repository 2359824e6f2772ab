"""Line charts. A band around a line shows the spread of repeated measurements; dashed lines are baselines.

Each line has its name at its end. If a figure has more bands than the page allows (by default one), all bands are
hidden. The browser shows the band of the line under the pointer and greys out the other lines
(``app/page_script/charts/lines.js``).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from app.figures.lines.curve import Curve
from app.figures.lines.line_names import (
    GLYPH,
    End,
    label_at_point,
    label_on_line,
    names_width,
    place_names,
    text_size,
    text_width,
)
from app.figures.lines.text_placement import SIDES, Box, find_rise, find_side
from app.figures.theme import GREY, SERIES, Figure, add_line, annotation, axis, finish, separate_colours, style
from attention_core.formatting import formatted, number

BAND = 0.18
"""Opacity of a band."""
SHADE = 0.1
"""Opacity of a shaded part of the background."""
AXIS_HEIGHT = 70
"""Pixels of a figure's height that the horizontal axis takes."""
HOVER_DISTANCE = 60
"""Largest distance in pixels from a point at which its tooltip appears."""
MAX_ARROW_VALUES = 2
"""Largest number of arrows above the axes whose values are written; the values of more arrows would overlap."""
ARROW = 6
"""Half the width in pixels of an arrow above the axes. Its middle is at the position of the value next to it."""
WIDTH = 960
"""Typical width of the horizontal axis in pixels."""
HEAD_ROOM = 24
"""Pixels above the axes for a label or arrows."""
LINE_HEIGHT = 16
"""Further pixels above the axes for each further line of a label."""
MARKER = 3
"""Half the width in pixels of a marker, which a text does not cover."""
MARKER_GROWTH = 6
"""Pixels by which the marker of a selected point is larger."""
RING, STAR = 15, 18
"""Diameters in pixels of a ring around a point, and of a star."""
MIN_PLAIN_SHARE = 1e-8
"""Smallest share on a logarithmic axis whose percentage is written without a power of ten."""
MAX_PERCENT_TICKS = 6
"""Largest number of steps between ticks on an axis with such percentages."""
EDGE = 0.5
"""Fraction of the horizontal axis, from the left, in which a vertical line has its label to its right.

Farther right, the label is to the left of the line, because a phone would cut it off.
"""


def curves(
    lines: Sequence[Curve],
    *,
    x_title: str,
    y_title: str,
    log_x: bool = False,
    log_y: bool = False,
    form: str = ".3g",
    height: int = 460,
    top: float | None = None,
    right: float | None = None,
    percent: bool = False,
    percent_x: bool = False,
    mark: tuple[float, str] | None = None,
    shaded: tuple[float, str] | None = None,
    x_ticks: Sequence[float] | Mapping[float, str] = (),
    y_ticks: Mapping[float, str] | None = None,
    link_prefix: str = "",
    max_bands: int = 1,
    width: float = WIDTH,
) -> Figure:
    """Draw lines on common axes.

    Args:
        lines: lines to draw.
        x_title: title of the horizontal axis, with its unit.
        y_title: title of the vertical axis, with its unit.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic; values that are not above zero then leave gaps.
        form: Python format of the values in tooltips.
        height: height in pixels.
        right: right end of the horizontal axis; None to fit the values. Arrows mark the lines that continue beyond
            it, and a double click shows their points.
        percent: whether the ticks of the vertical axis are percentages.
        percent_x: whether the ticks of the horizontal axis are percentages.
        mark: position and label of a thin vertical line, for example at the current setting.
        shaded: position from which the background is shaded up to the right end, and the label of this part.
        top: upper end of a linear vertical axis; None to fit the values. Arrows mark the points that are
            farthest above it, and a double click shows them.
        x_ticks: ticks of the horizontal axis, or their texts by position; empty for plotly's choice.
        y_ticks: texts of the vertical axis's ticks by position; None for plotly's choice.
        link_prefix: beginning of the addresses that points link to.
        max_bands: largest number of bands that are visible; if there are more, all bands are hidden.
        width: typical width of the horizontal axis in pixels; texts next to points are placed for this width.
    """
    colours = separate_colours(line.colour for line in lines)
    lines = [replace(line, colour=colours[line.colour]) for line in lines]
    bands = sum(line.low is not None and line.high is not None and not line.hides_band for line in lines)
    band = BAND if bands <= max_bands else 0.0
    data = [trace for line in lines for trace in _traces(line, form, log_y=log_y, band=band)]
    xaxis = axis(x_title, type="log" if log_x else "linear")
    if x_ticks:
        texts = list(x_ticks.values()) if isinstance(x_ticks, Mapping) else [f"{x:,.12g}" for x in x_ticks]
        xaxis |= {"tickvals": list(x_ticks), "ticktext": texts}
    elif not log_x and _are_few_whole_numbers([x for line in lines for x in line.x]):
        xaxis["dtick"] = 1  # Ticks at whole numbers only: 2.5 layers do not exist.
    visible = list(lines)
    if right is not None:
        visible = [_clip(line, right, log_x=log_x) for line in lines]
        xs = [x for line in visible for x in _to_axis(line.x, log=log_x)]
        xaxis["range"] = [_pad(min(xs), max(xs), 0.02)[0], *_to_axis([right], log=log_x)]
    yaxis = axis(y_title, type="log" if log_y else "linear")
    if y_ticks:
        yaxis |= {"tickvals": list(y_ticks), "ticktext": list(y_ticks.values())}
    if top is not None and not log_y:
        yaxis["range"] = [-0.03 * top, top]  # An axis from 0 would cut off half the width of a line at 0.
    figure = finish(data, height=height, xaxis=xaxis, yaxis=yaxis, hovermode="closest", hoverdistance=HOVER_DISTANCE)
    if percent:
        figure["layout"]["yaxis"] |= _percent_ticks([y for line in lines for y in line.y if y and y > 0], log=log_y)
    if percent_x:
        figure["layout"]["xaxis"]["tickformat"] = "~%"
    if link_prefix:
        figure["layout"]["meta"] = {"link_prefix": link_prefix}
    labels = _arrows(visible, top, log_x=log_x, percent=percent) if top is not None and not log_y else []
    # The labels of ``mark`` and ``shaded`` are raised above those of the arrows.
    raised = "<br>\N{NO-BREAK SPACE}" * max((label["text"].count("<br>") + 1 for label in labels), default=0)
    if mark is not None and any(line.x for line in visible):  # A chart may have no points before the first result.
        position, text = mark
        add_line(figure, x=position, color=SERIES[GREY], width=1, dash="dot")
        x, xs = *_to_axis([position], log=log_x), [x for line in visible for x in _to_axis(line.x, log=log_x)]
        side = "left" if x < min(xs) + EDGE * (max(xs) - min(xs)) else "right"
        labels.append(annotation(text + raised, x, 1, yref="y domain", yanchor="bottom", xanchor=side, align=side))
    if shaded is not None and right is not None:
        position, text = shaded
        area = {"type": "rect", "x0": position, "x1": right, "yref": "y domain", "y0": 0, "y1": 1, "line": {"width": 0}}
        fill = {"fillcolor": SERIES[GREY], "opacity": SHADE, "layer": "below"}
        figure["layout"].setdefault("shapes", []).append(area | fill)
        [x] = _to_axis([right], log=log_x)
        labels.append(annotation(text + raised, x, 1, yref="y domain", yanchor="bottom", xanchor="right"))
    if labels:
        breaks = max(label["text"].count("<br>") for label in labels)
        figure["layout"]["margin"] = {**figure["layout"]["margin"], "t": HEAD_ROOM + LINE_HEIGHT * breaks}
    if right is not None:
        labels = [*labels, *_right_arrows(lines, visible, right, log_x=log_x, log_y=log_y)]
    figure["layout"]["annotations"] = labels
    _write_names(figure, lines, visible, None if mark is None else mark[0], width, log_x=log_x, log_y=log_y)
    return figure


def _percent_ticks(values: Sequence[float], *, log: bool) -> dict[str, Any]:
    """Return the tick properties of an axis of percentages, whose smallest ticks need powers of ten.

    Plotly's format would write a tick of 10⁻¹⁰ as 0%.
    """
    if not log or min(values, default=1.0) >= MIN_PLAIN_SHARE:
        return {"tickformat": "~%"}
    low, high = (round(math.log10(choose(values))) for choose in (min, max))
    ticks = [10.0**power for power in range(high, low - 1, -max(1, math.ceil((high - low) / MAX_PERCENT_TICKS)))]
    return {"tickvals": ticks, "ticktext": [f"{number(100 * tick, 1)}%" for tick in ticks]}


def _are_few_whole_numbers(xs: Sequence[float]) -> bool:
    """Return whether positions are whole numbers in a range of at most five."""
    return bool(xs) and all(float(x).is_integer() for x in xs) and max(xs) - min(xs) <= 5


def _clip(line: Curve, right: float, *, log_x: bool) -> Curve:
    """Return the part of a line that is visible if the horizontal axis ends at ``right``, without its band."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if x <= right]
    for (x0, y0), (x1, y1) in pairwise(zip(line.x, line.y, strict=True)):
        if (x0 <= right) != (x1 <= right) and y0 is not None and y1 is not None:
            a, b, end = _to_axis([x0, x1, right], log=log_x)
            points.append((right, y0 + (y1 - y0) * (end - a) / (b - a)))
    return replace(line, x=[x for x, _y in points], y=[y for _x, y in points], low=None, high=None)


def _right_arrows(
    lines: Sequence[Curve], visible: Sequence[Curve], right: float, *, log_x: bool, log_y: bool
) -> list[dict[str, Any]]:
    """Return an arrow at the right end of the axis for each line whose ``visible`` part ends there before the line."""
    arrows = []
    for line, part in zip(lines, visible, strict=True):
        points = _points(part, log_x=log_x, log_y=log_y)
        continues = any(x > right for x, y in zip(line.x, line.y, strict=True) if y is not None and math.isfinite(y))
        if points and continues and right == part.x[-1]:
            text = f'<span style="color:{style(line.colour).colour}">▶</span>'
            arrows.append(annotation(text, *points[-1], xanchor="center", yanchor="middle"))
    return arrows


def _arrows(lines: Sequence[Curve], top: float, *, log_x: bool, percent: bool) -> list[dict[str, Any]]:
    """Return an annotation (the largest value and an arrow) at the highest point of each part of a line above the top.

    Annotations at the same position are one annotation with several lines of text. The value is to the left of its
    arrow, but to the right at the left end of the axis, where it would cover a tick of the vertical axis. If there are
    many arrows, they have no values.
    """
    arrows: dict[float, list[tuple[str, str]]] = {}
    points_by_line = [_points(line, log_x=log_x, log_y=False) for line in lines]
    first = min((x for points in points_by_line for x, _y in points), default=0.0)
    for line, points in zip(lines, points_by_line, strict=True):
        for is_above, part in groupby(points, key=lambda point: point[1] > top):
            if is_above:
                x, largest = max(part, key=itemgetter(1))
                text = f"{100 * largest:.0f}%" if percent else number(largest)
                arrow = f'<span style="color:{style(line.colour).colour}">▲</span>'
                arrows.setdefault(x, []).append((arrow, text) if x == first else (text, arrow))
    right = {"xanchor": "right", "xshift": ARROW, "align": "right"}
    left = {"xanchor": "left", "xshift": -ARROW, "align": "left"}
    has_values = sum(map(len, arrows.values())) <= MAX_ARROW_VALUES
    texts = {
        x: "<br>".join(map(" ".join, pairs)) if has_values else pairs[0][x != first] for x, pairs in arrows.items()
    }
    return [
        annotation(text, x, 1, yref="y domain", yanchor="bottom", **(left if x == first else right))
        for x, text in texts.items()
    ]


def _traces(line: Curve, form: str, *, log_y: bool, band: float) -> Iterable[dict[str, Any]]:
    """Yield plotly's traces of a line: first its band, if it has one, with opacity ``band``, then the line."""
    style_, group = style(line.colour), line.group or line.name
    if line.low is not None and line.high is not None:
        edges = [*line.high, *reversed(line.low)]
        if log_y:  # A logarithmic axis cannot show zero, so the band ends at the smallest positive value.
            smallest = min((y for y in (*edges, *line.y) if y is not None and y > 0), default=1.0)
            edges = [max(y, smallest) for y in edges]
        yield {
            "type": "scatter",
            "x": [*line.x, *reversed(line.x)],
            "y": edges,
            "mode": "lines",
            "fill": "toself",
            "opacity": 0.0 if line.hides_band else band * min(1, line.width / 2),
            "fillcolor": style_.colour,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": group,
        }
    notes = line.notes or [formatted(math.nan if y is None else y, form) for y in line.y]
    hover = "%{customdata}" if line.notes else "%{x}: %{customdata}"
    yield {
        "type": "scatter",
        "x": list(line.x),
        "y": [None if log_y and y is not None and y <= 0 else y for y in line.y],
        "name": line.name,
        "legendgroup": group,
        "showlegend": line.name_at_end,
        # Plotly keeps a text off its line only if the point has a marker. The marker may be transparent.
        "mode": "lines" + "+markers" * (line.markers or any(line.texts)) + "+text" * any(line.texts),
        **(
            {"text": list(line.texts), "textposition": line.text_position or SIDES[0], "cliponaxis": False}
            if any(line.texts)
            else {}
        ),
        "line": {
            "color": style_.colour,
            "dash": style_.dash if line.dash == "solid" else line.dash,
            "width": line.width,
        },
        "marker": _marker(line),
        "customdata": list(notes),
        **({"meta": {"links": list(line.links)}} if line.links else {}),
        "hovertemplate": f"<b>{line.name}</b><br>{hover}<extra></extra>",
    }


def _marker(line: Curve) -> dict[str, Any]:
    """Return plotly's markers of a line: one size and symbol, or one for each point if a point is marked."""
    symbol = line.symbol or style(line.colour).marker + "-open" * line.hollow
    marker: dict[str, Any] = {"opacity": float(line.markers), "symbol": symbol, "line": {"width": 2 * line.hollow}}
    if line.open_indices:
        is_open = [i in line.open_indices for i in range(len(line.x))]
        marker["symbol"] = [symbol + "-open" * each for each in is_open]
        marker["line"] = {"width": [2 * each for each in is_open]}
    if line.large_index is None and line.ring_index is None and line.star_index is None:
        return marker | {"size": line.size}
    sizes = [line.size + MARKER_GROWTH * (i == line.large_index) for i in range(len(line.x))]
    if line.ring_index is not None:
        rings = [i == line.ring_index for i in range(len(line.x))]
        sizes = [RING if ring else size for ring, size in zip(rings, sizes, strict=True)]
        marker["symbol"] = [symbol.removesuffix("-open") + "-open" if ring else symbol for ring in rings]
        marker["line"] = {"width": [2 * (ring or line.hollow) for ring in rings]}
    if line.star_index is not None:
        if isinstance(marker["symbol"], str):
            marker["symbol"] = [symbol] * len(line.x)
        marker["symbol"][line.star_index] = "star"
        sizes[line.star_index] = STAR
    return marker | {"size": sizes}


def _write_names(
    figure: Figure,
    lines: Sequence[Curve],
    visible: Sequence[Curve],
    mark: float | None,
    width: float,
    *,
    log_x: bool,
    log_y: bool,
) -> None:
    """Write the lines' names at their ends if there is room for all of them; otherwise the figure keeps its legend.

    Texts next to points are placed so that they cross neither lines nor each other. ``visible`` has the parts of the
    lines that the horizontal axis shows, ``mark`` is the position of a vertical line, and ``width`` the axis's width.
    """
    layout = figure["layout"]
    indices = [i for i, trace in enumerate(figure["data"]) if "name" in trace]  # The other traces are bands.
    ends: list[End] = []
    point_ends: list[End] = []
    for line, visible_part, index in zip(lines, visible, indices, strict=True):
        named_part = visible_part if line.name_index is None else _point(line, line.name_index)
        if line.name_at_end and (end := _line_end(named_part, index, log_x=log_x, log_y=log_y)):
            (point_ends if line.symbol or named_part is not visible_part else ends).append(end)
    if not ends and not point_ends:
        return
    xs = [x for line in visible for x in _to_axis(line.x, log=log_x)]
    # The axis need not show bands that are hidden until the pointer is at their line.
    hidden = {i - 1 for line, i in zip(lines, indices, strict=True) if line.hides_band and line.low is not None}
    ys = [y for i, trace in enumerate(figure["data"]) if i not in hidden for y in _to_axis(trace["y"], log=log_y)]
    left, right = layout["xaxis"].get("range") or _pad(min(xs), max(xs), 0.02)
    low, high = layout["yaxis"].get("range") or _pad(min(ys), max(ys), 0.05)
    height = layout["height"] - AXIS_HEIGHT

    def pixels(x: float, y: float) -> tuple[float, float]:
        return (x - left) / (right - left) * width, (y - low) / (high - low) * height

    paths = [[pixels(*point) for point in _points(line, log_x=log_x, log_y=log_y)] for line in visible]
    boxes = [Box(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for path in paths for x, y in path]
    paths += [[pixels(x, low), pixels(x, high)] for x in _to_axis([mark], log=log_x)]
    rise_labels = []
    for end in list(ends):
        i = indices.index(end.trace)
        heights = [pixels(left, y)[1] for y in _to_axis(lines[i].name_heights, log=log_y)]
        if fit := find_rise(paths[i], heights, (text_width(end.name), GLYPH), paths, boxes):
            (x, y), side, box = fit
            point = replace(end, x=left + x / width * (right - left), y=low + y / height * (high - low))
            rise_labels.append(label_on_line(point, side))
            boxes.append(box)
            ends.remove(end)
    names = place_names(ends, left=left, right=right, low=low, high=high, height=height, log_x=log_x, log_y=log_y)
    if names is None:
        return
    layout["xaxis"]["range"], layout["yaxis"]["range"] = [left, right], [low, high]
    if ends:
        layout["margin"] = {**layout["margin"], "r": names_width(ends)}
    layout["showlegend"] = False

    def place_text(x: float, y: float, text: str) -> str:
        side, box = find_side(pixels(x, y), text_size(text), paths, boxes, width)
        boxes.append(box)
        return side

    layout["annotations"] += names["annotations"] + rise_labels
    layout["annotations"] += [label_at_point(end, place_text(end.x, end.y, end.name)) for end in point_ends]
    layout["shapes"] = [*layout.get("shapes", ()), *names["shapes"]]
    for line, index in zip(lines, indices, strict=True):
        if any(line.texts) and not line.text_position:
            points = [_points(_point(line, i), log_x=log_x, log_y=log_y) for i in range(len(line.x))]
            figure["data"][index]["textposition"] = [
                place_text(*point[0], text) if point and text else SIDES[0]
                for point, text in zip(points, line.texts, strict=True)
            ]


def _point(line: Curve, i: int) -> Curve:
    return replace(line, x=line.x[i : i + 1], y=line.y[i : i + 1])


def _line_end(line: Curve, index: int, *, log_x: bool, log_y: bool) -> End | None:
    """Return the end of a line; None if no point of it is drawn."""
    points = _points(line, log_x=log_x, log_y=log_y)
    if not points:
        return None
    dash = "" if line.markers else line.dash
    return End(index, line.label or line.name, line.colour, *max(points), hollow=line.hollow, dash=dash)


def _points(line: Curve, *, log_x: bool, log_y: bool) -> list[tuple[float, float]]:
    """Return the coordinates of the points of a line that the axes can show."""
    return [
        (x, y)
        for pair in zip(line.x, line.y, strict=True)
        for x in _to_axis(pair[:1], log=log_x)
        for y in _to_axis(pair[1:], log=log_y)
    ]


def _to_axis(values: Iterable[float | None], *, log: bool) -> list[float]:
    """Return the coordinates of the values on an axis, without values that the axis cannot show."""
    visible = [float(y) for y in values if y is not None and math.isfinite(y) and (not log or y > 0)]
    return [math.log10(y) for y in visible] if log else visible


def _pad(low: float, high: float, share: float) -> tuple[float, float]:
    """Return the ends of an axis: ``low`` and ``high``, with padding of ``share`` times their distance on each side.

    A single value is in the middle of the axis.
    """
    padding = share * (high - low) or 0.5
    return low - padding, high + padding
