"""The look that all figures share: type sizes, margins, number formats, and colours for light and dark pages."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.words.isolation import isolate
from attention_core.formatting import number

Figure = dict[str, Any]
"""A figure in plotly.js's JSON format: ``data`` and ``layout``.

``plotly.graph_objects`` would check and copy every property, which is most of the cost of a page with charts. The tests
use it to check these figures.
"""

SERIES = (
    "#2f6fc0",
    "#ea5202",
    "#4ca167",
    "#934b83",
    "#a47cf9",
    "#d76faf",
    "#4e6c4d",
    "#c81e45",
    "#6963ec",
    "#af3bae",
    "#5c9ac4",
    "#7f7f7f",
)
"""Colours with a contrast of at least 3 to 1 on a light and a dark page, as WCAG 2.2 requires for lines (1.4.11).
Among such colours they are the farthest apart in OKLab, for colour-blind viewers too; the first ones differ most."""
PAGE = "#ffffff"
"""Background of annotations that cover lines behind them; ``page_script/charts/chart.js`` takes the page's colour."""
GREY = -1
"""Index of the grey, for references that are not variants, such as uniform attention."""
COLOURS = len(SERIES) - 1
"""Number of colours without the grey."""
MARKERS = (
    ("solid", "circle", "●○"),
    ("longdash", "square", "■□"),
    ("longdashdot", "diamond", "◆◇"),
    ("dashdot", "triangle-up", "▲△"),
    ("14px,3px,3px,3px,3px,3px", "triangle-down", "▼▽"),
    ("20px,3px", "star", "★☆"),
)
"""Dash, marker and marker symbols (filled and open). Lines take the colours of ``SERIES`` in turn with the first row.
When all colours are used, further lines take them again with the second row, and so on."""
STYLE_COUNT = COLOURS * len(MARKERS)
"""Number of different combinations of colour, dash and marker."""


@dataclass(frozen=True)
class Style:
    """The look of a line.

    Attributes:
        colour: CSS colour.
        dash: plotly's name of the dash; not used for a line whose dash has a meaning, such as a baseline.
        marker: plotly's name of the marker.
        signs: the marker as a character, filled and open.
    """

    colour: str
    dash: str
    marker: str
    signs: str

    def sign(self, *, hollow: bool) -> str:
        """Return the marker as a character."""
        return self.signs[hollow]


def style(index: int) -> Style:
    """Return the style with an index; the first ``STYLE_COUNT`` indices have different styles."""
    if index == GREY:
        return Style(SERIES[GREY], *MARKERS[0])
    return Style(SERIES[index % COLOURS], *MARKERS[index // COLOURS % len(MARKERS)])


def separate_colours(indices: Iterable[int]) -> dict[int, int]:
    """Return a style index for the index of each line, so that the lines have different colours.

    If two indices have the same colour, the smaller index keeps the colour. The larger index takes the last free
    colour, with its own dash and marker. If no colour is free, both indices keep their styles.
    """
    result: dict[int, int] = {}
    used: dict[int, int] = {}
    for index in sorted(set(indices)):
        result[index] = index
        if index != GREY:
            used.setdefault(index % COLOURS, index)
    free = [colour for colour in range(COLOURS) if colour not in used]
    for index in result:
        if index != GREY and used[index % COLOURS] != index and free:
            result[index] += free.pop() - index % COLOURS
    return result


Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Ramps:
    """Colours of the matrix board as evenly spaced 8-bit sRGB stops, from zero to the largest magnitude."""

    positive: tuple[Colour, ...]
    negative: tuple[Colour, ...]
    masked: Colour


LIGHT = Ramps(
    positive=((229, 239, 243), (166, 217, 229), (105, 191, 216), (57, 157, 205), (33, 118, 193), (40, 75, 168)),
    negative=((242, 236, 228), (235, 195, 145), (218, 146, 77), (189, 96, 30), (140, 57, 30)),
    masked=(241, 242, 245),
)
DARK = Ramps(
    positive=((35, 38, 46), (48, 62, 114), (51, 94, 166), (57, 135, 200), (72, 178, 222), (119, 216, 233)),
    negative=((71, 39, 24), (120, 57, 21), (169, 89, 29), (213, 135, 52), (242, 189, 110)),
    masked=(32, 31, 29),
)


def sample_ramp(ramp: Sequence[Colour], positions: float | np.ndarray) -> np.ndarray:
    """Return colours of a ramp, ``[..., 3]``, at places from 0 (first stop) to 1 (last stop)."""
    stops = np.linspace(0.0, 1.0, len(ramp))
    return np.stack([np.interp(positions, stops, channel) for channel in np.array(ramp, float).T], -1)


def escape_label(label: str, limit: int | None = None) -> str:
    """Return a label for plotly: cut to ``limit`` letters, protected from right-to-left reordering, and escaped."""
    text = isolate(label if limit is None or len(label) <= limit else label[: limit - 1] + "…")
    return text.replace("&", "&amp;").replace("<", "&lt;")


def format_numbers(values: Iterable[float], digits: int = 3) -> list[str]:
    """Return numbers for tooltips, formatted as in sentences; plotly's own formats write 1,390 as ``1.39e+3``."""
    return [number(float(value), digits) for value in values]


DECIMALS = ",.3~r"
"""Plotly's format with three digits and no exponent, for figures with thousands of points.

``format_numbers`` takes up to 30 µs per number.
"""
MAX_DECADES = 4.0
"""Largest range of a logarithmic axis, in decades, at which multiples of 2 and 5 are labelled too."""
MAX_POWERS = 8
"""Largest number of steps between the powers of ten that an axis labels."""
PLAIN_RANGE = (1e-4, 1e6)
"""Range in which a logarithmic axis writes numbers like 0.05 and 20,000. Outside, it writes powers of ten, or 20M if
all numbers are at least 1."""


MAX_PREFIXED = 1e15
"""Upper limit for values that are written with the common prefixes k, M, G and T."""


def axis(title: str, **properties: Any) -> dict[str, Any]:  # noqa: ANN401 - properties of plotly's axis
    """Return a plotly axis with a title and further properties; without a title if it is empty.

    Plotly would reserve room for an empty title.
    """
    return {**({"title": {"text": title}} if title else {}), **properties}


def annotation(text: str, x: float, y: float | str, **properties: object) -> dict[str, Any]:
    """Return a plotly annotation without an arrow: text at a position, with further properties of plotly's."""
    return {"text": text, "x": x, "y": y, "showarrow": False, **properties}


def add_line(figure: Figure, *, x: float | None = None, y: float | None = None, axes: str = "", **line: object) -> None:
    """Draw a line across a figure: vertical at ``x`` or horizontal at ``y``.

    ``axes`` is plotly's number of the axes.
    """
    across = {"x0": x, "x1": x, "xref": f"x{axes}", "y0": 0, "y1": 1, "yref": f"y{axes} domain"}
    if y is not None:
        across = {"x0": 0, "x1": 1, "xref": f"x{axes} domain", "y0": y, "y1": y, "yref": f"y{axes}"}
    figure["layout"].setdefault("shapes", []).append({"type": "line", **across, "line": line})


def finish(data: list[dict[str, Any]], *, height: int, **layout: Any) -> Figure:  # noqa: ANN401 - properties of plotly's layout
    """Build a figure with the shared look; ``layout`` adds axes and other properties, and the height is in pixels."""
    for name, properties in layout.items():
        if name[1:].startswith("axis") and properties.get("type") == "log":
            smallest, largest = _data_range(data, name[0], name[5:])
            if PLAIN_RANGE[0] <= smallest and largest <= PLAIN_RANGE[1]:
                properties["tickformat"] = DECIMALS
            elif smallest >= 1 and largest < MAX_PREFIXED:
                properties["tickformat"] = ".3~s"
            else:  # Powers of ten instead of prefixes such as "1µ", because most of these axes have no physical unit.
                properties["exponentformat"] = "power"
            if "tickvals" not in properties and smallest < largest <= smallest * 10**MAX_DECADES:
                properties["dtick"] = "D2"
            elif "exponentformat" in properties and "tickvals" not in properties and 0 < smallest < largest:
                # Otherwise, plotly may write "2" and "5" between the powers of ten.
                properties["dtick"] = math.ceil(math.log10(largest / smallest) / MAX_POWERS)
    shared: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 34, "t": 8, "b": 8},  # The right margin has room for the button that saves the picture.
        "font": {"size": 13},
        "hoverlabel": {"font": {"size": 13}, "align": "left"},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "colorway": list(SERIES),
    }
    for name, properties in layout.items():
        shared[name] = {**shared[name], **properties} if name in shared else properties
    return {"data": data, "layout": shared}


def _data_range(data: Sequence[Mapping[str, Any]], letter: str, number: str) -> tuple[float, float]:
    """Return the smallest and largest positive value on an axis (``letter`` x or y); zeros without one.

    ``number`` is plotly's number of the axis, empty for the first one.
    """
    values = [
        np.asarray(trace[letter], dtype=float)
        for trace in data
        if trace.get(letter) is not None and trace.get(f"{letter}axis", letter) == letter + number
    ]
    positive = np.concatenate(values) if values else np.empty(0)
    positive = positive[np.isfinite(positive) & (positive > 0)]
    return (float(positive.min()), float(positive.max())) if len(positive) else (0.0, 0.0)
