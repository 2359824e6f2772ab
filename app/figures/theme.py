"""What all figures share: type sizes, margins, and colours that tell things apart in light and dark."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

SERIES = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#ee8866",
    "#77aadd",
    "#bbcc33",
    "#999933",
    "#cc6677",
    "#888888",
)
"""Paul Tol's bright and light schemes: told apart by colour-blind readers, on white and on black."""
GREY = len(SERIES) - 1
"""Place of the grey: references that are no variant, such as uniform attention."""

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Ramps:
    """The matrix board's colours as 8-bit sRGB stops, evenly spaced: zero first, the largest magnitude last.

    A matrix without negative entries takes ``sequential``; the halves of a signed one take the other two.
    """

    sequential: tuple[Colour, ...]
    positive: tuple[Colour, ...]
    negative: tuple[Colour, ...]
    masked: Colour


LIGHT = Ramps(
    sequential=(
        (251, 251, 242),
        (210, 231, 177),
        (119, 208, 162),
        (38, 167, 173),
        (25, 118, 170),
        (45, 67, 144),
        (36, 26, 84),
    ),
    positive=((250, 250, 250), (140, 196, 244), (56, 128, 202), (27, 39, 108)),
    negative=((250, 250, 250), (241, 183, 126), (199, 105, 44), (100, 35, 13)),
    masked=(222, 223, 228),
)
DARK = Ramps(
    sequential=(
        (21, 21, 31),
        (49, 50, 122),
        (36, 96, 168),
        (17, 149, 180),
        (66, 194, 173),
        (162, 230, 148),
        (252, 252, 181),
    ),
    positive=((22, 22, 22), (42, 74, 136), (66, 153, 220), (187, 243, 255)),
    negative=((22, 22, 22), (120, 56, 24), (212, 124, 46), (255, 234, 174)),
    masked=(58, 61, 71),
)


FEW = 4.0
"""Decades of an axis up to which 2 and 5 are labelled as well."""


def finish(figure: go.Figure, *, height: int) -> go.Figure:
    """Give a figure the shared look."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 34, "t": 8, "b": 8},  # on the right stands the button that saves the picture
        font={"size": 13},
        hoverlabel={"font": {"size": 13}},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        colorway=list(SERIES),
    )
    for letter, axes in (("x", figure.select_xaxes), ("y", figure.select_yaxes)):
        for axis in axes({"type": "log"}):
            # Powers of ten, not "1µ": what stands on these axes is mostly no physical quantity.
            axis.exponentformat = "power"
            if axis.tickvals is None and 0 < _decades(figure, letter, axis.plotly_name) <= FEW:
                axis.dtick = "D2"
    return figure


def _decades(figure: go.Figure, letter: str, axis: str) -> float:
    """How many powers of ten the data on an axis span."""
    name = axis.replace("axis", "")
    values = [
        np.asarray(trace[letter], dtype=float)
        for trace in figure.data
        if trace[letter] is not None and (trace[f"{letter}axis"] or letter) == name
    ]
    shown = np.concatenate(values) if values else np.empty(0)
    shown = shown[np.isfinite(shown) & (shown > 0)]
    return float(np.log10(shown.max() / shown.min())) if len(shown) else 0.0
