"""What all figures share: type sizes, margins, and colours that tell things apart in light and dark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.words.isolation import isolated
from attention_core.formatting import number

Figure = dict[str, Any]
"""What plotly.js draws: ``data``, ``layout`` and, where it plays, ``frames``, as one would write them in JSON.

``plotly.graph_objects`` would check and copy each word of it, which is most of what a page of charts costs; the tests
have it check what is made here.
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
"""Each at least 3 to 1 against a light page and a dark one, as WCAG 2.2 asks of lines (1.4.11), and of what is left
those that lie farthest apart in OKLab, for colour-blind eyes too; the first ones are told apart best."""
GREY = -1
"""Place of the grey: references that are no variant, such as uniform attention."""
COLOURS = len(SERIES) - 1
"""Colours that are not the grey."""
ROUNDS = (
    ("solid", "circle", "●○"),
    ("longdash", "square", "■□"),
    ("longdashdot", "diamond", "◆◇"),
    ("dashdot", "triangle-up", "▲△"),
    ("14px,3px,3px,3px,3px,3px", "triangle-down", "▼▽"),
    ("20px,3px", "star", "★☆"),
)
"""Stroke, mark and its sign in words, filled and open, of the places in the series: the first go once through all
colours, the next once more with another stroke, and so on."""
PLACES = COLOURS * len(ROUNDS)
"""The number of different combinations of colour, stroke and mark."""


@dataclass(frozen=True)
class Style:
    """How a line at a place in the series looks, and nothing else that belongs to a variant.

    Attributes:
        colour: as CSS has it.
        dash: its stroke, where that says nothing else.
        mark: Plotly's name of its marks.
        signs: the mark as a letter, filled and open.
    """

    colour: str
    dash: str
    mark: str
    signs: str

    def sign(self, *, hollow: bool) -> str:
        """The mark as a letter."""
        return self.signs[hollow]


def style(place: int) -> Style:
    """The look of a place in the series; no two of the first sixty-six are alike."""
    if place == GREY:
        return Style(SERIES[GREY], *ROUNDS[0])
    return Style(SERIES[place % COLOURS], *ROUNDS[place // COLOURS % len(ROUNDS)])


Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Ramps:
    """The matrix board's colours as 8-bit sRGB stops, evenly spaced: zero first, the largest magnitude last."""

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
    negative=((45, 36, 33), (107, 53, 31), (161, 84, 33), (211, 131, 50), (242, 189, 110)),
    masked=(32, 31, 29),
)


def along(ramp: Sequence[Colour], places: float | np.ndarray) -> np.ndarray:
    """A ramp's colours, ``[..., 3]``, at places from 0, its first stop, to 1, its last."""
    stops = np.linspace(0.0, 1.0, len(ramp))
    return np.stack([np.interp(places, stops, channel) for channel in np.array(ramp, float).T], -1)


def plain(label: str, most: int | None = None) -> str:
    """Return a label for Plotly, isolated and at most so many letters long; Plotly reads tags, so these are escaped."""
    shown = isolated(label if most is None or len(label) <= most else label[: most - 1] + "…")
    return shown.replace("&", "&amp;").replace("<", "&lt;")


def numerals(values: Iterable[float], digits: int = 3) -> list[str]:
    """Return numbers for hover texts, written as in sentences. Plotly's own formats write 1,390 as ``1.39e+3``."""
    return [number(float(value), digits) for value in values]


DECIMALS = ",.3~r"
"""Plotly's format with three digits and no exponent, for figures of thousands of points.

``numerals`` takes up to 30 µs a number.
"""
FEW = 4.0
"""Decades of an axis up to which 2 and 5 are labelled as well."""
WRITTEN_OUT = (1e-4, 1e6)
"""Where a logarithmic axis says 0.05 and 20,000; beyond, powers of ten, or 20M where all are above one."""


LARGE = 1e15
"""Where prefixes end that people know: k, M, G and T."""


def axis(title: str, **look: Any) -> dict[str, Any]:  # noqa: ANN401 - plotly's own
    """An axis with its title; what else is said of it is plotly's."""
    return {"title": {"text": title}, **look}


def ruled(figure: Figure, *, x: float | None = None, y: float | None = None, axes: str = "", **line: object) -> None:
    """Draw a line across a figure, upright at ``x`` or level at ``y``; of several axes those with a number."""
    across = {"x0": x, "x1": x, "xref": f"x{axes}", "y0": 0, "y1": 1, "yref": f"y{axes} domain"}
    if y is not None:
        across = {"x0": 0, "x1": 1, "xref": f"x{axes} domain", "y0": y, "y1": y, "yref": f"y{axes}"}
    figure["layout"].setdefault("shapes", []).append({"type": "line", **across, "line": line})


def finish(data: list[dict[str, Any]], *, height: int, **layout: Any) -> Figure:  # noqa: ANN401 - plotly's own
    """Make a figure with the shared look.

    Args:
        data: its traces.
        height: in pixels.
        layout: axes and what else differs from the shared look.
    """
    for name, look in layout.items():
        if name[1:].startswith("axis") and look.get("type") == "log":
            least, most = _ends(data, name[0], name[5:])
            if WRITTEN_OUT[0] <= least and most <= WRITTEN_OUT[1]:
                look["tickformat"] = DECIMALS
            elif least >= 1 and most < LARGE:
                look["tickformat"] = ".3~s"
            else:  # powers of ten, not "1µ": what stands on these axes is mostly no physical quantity
                look["exponentformat"] = "power"
            if "tickvals" not in look and least < most <= least * 10**FEW:
                look["dtick"] = "D2"
    shared: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 34, "t": 8, "b": 8},  # on the right stands the button that saves the picture
        "font": {"size": 13},
        "hoverlabel": {"font": {"size": 13}},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "colorway": list(SERIES),
    }
    for name, look in layout.items():
        shared[name] = {**shared[name], **look} if name in shared else look
    return {"data": data, "layout": shared}


def _ends(data: Sequence[Mapping[str, Any]], letter: str, number: str) -> tuple[float, float]:
    """The least and the largest of the data on an axis that are above zero; 0 where none is."""
    values = [
        np.asarray(trace[letter], dtype=float)
        for trace in data
        if trace.get(letter) is not None and trace.get(f"{letter}axis", letter) == letter + number
    ]
    shown = np.concatenate(values) if values else np.empty(0)
    shown = shown[np.isfinite(shown) & (shown > 0)]
    return (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 0.0)
