"""The records that describe a board, which draws matrices side by side: its panels, one per matrix, and their sliders.

On some boards the numbers are categories instead of magnitudes; a record names and colours each category.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Category:
    """The meaning of a whole number on a board of categories.

    Attributes:
        name: its name on hover and in the legend.
        light: its colour on a light page, ``#rrggbb``; empty for the colour of 0.
        dark: its colour on a dark page.
        listed: whether the legend shows it; it can omit mixes of other categories.
        group: the heading of its part of the legend; empty for the board's unit.
        frame: the frame of the board's animation that first shows it; 0 if every frame does.
    """

    name: str
    light: str
    dark: str
    listed: bool = True
    group: str = ""
    frame: int = 0


@dataclass(frozen=True)
class Knob:
    """A setting with a slider on its panel, which is redrawn while the slider is dragged.

    Attributes:
        name: its name on screen.
        stops: the possible values, in order.
        value: the value that the panel shows.
    """

    name: str
    stops: Sequence[float]
    value: float


@dataclass(frozen=True, eq=False)
class Panel:
    """One matrix on the board.

    Attributes:
        key: the panel's name in the page's markup.
        title: the name shown over the matrix.
        caption: a short line under the title.
        values: ``[rows, cols]``, finite, or NaN where a row cannot attend to a column.
        row_labels: one label per row if these are not the board's rows.
        col_labels: one label per column if these are not the board's columns.
        row_title: the name of the rows on the axis and in the readout, if these are not the board's rows.
        col_title: the same for the columns.
        borders: indices before which a line crosses the matrix, for rows and columns.
        details: the tooltip of the caption; empty for the caption itself.
        knob: the setting under the title.
        tooltip: the tooltip of the title; empty for the title itself.
        settings_label: the name of the button next to the title that opens the panel's settings; empty for no button.
        frames: the caption in each frame of the board's animation; empty for a panel that does not change.
        mark: the colour of a square before the title, ``#rrggbb``; empty for none.
        group: the heading of the categories that the panel explains instead of the legend; empty for none.
        top: the end of the colour scale if not the largest magnitude, so that successive matrices are comparable.
        scale_panel: the name of the panel whose colour bar also holds for this one, on a board with a scale per panel;
            empty for a bar of its own.
    """

    key: str
    title: str
    caption: str
    values: np.ndarray
    row_labels: Sequence[str] | None = None
    col_labels: Sequence[str] | None = None
    row_title: str | None = None
    col_title: str | None = None
    borders: Sequence[int] = ()
    details: str = ""
    knob: Knob | None = None
    tooltip: str = ""
    settings_label: str = ""
    frames: Sequence[str] = ()
    mark: str = ""
    group: str = ""
    top: float = 0.0
    scale_panel: str = ""
