"""Data classes that describe a board, which draws one panel per matrix, side by side.

A panel may have a slider (``Knob``). On some boards, each matrix cell belongs to a category, such as "allowed by the
window". The cell's value is then the category's index, and a ``Category`` holds the category's name and colours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Category:
    """The name and colours of one category, on a board whose values are category numbers.

    Attributes:
        name: the category's name on hover and in the legend.
        light: the category's colour on a light page, ``#rrggbb``; empty for the colour of the value 0.
        dark: the category's colour on a dark page.
        listed: whether the legend shows the category; False for a combination of categories that the legend shows.
        group: the heading of the category's part of the legend; empty for the board's unit.
        frame: the first animation frame that shows the category, counted from 1; 0 to show it in every frame.
    """

    name: str
    light: str
    dark: str
    listed: bool = True
    group: str = ""
    frame: int = 0


@dataclass(frozen=True)
class Knob:
    """A setting with a slider on its panel. The panel is redrawn while the slider is dragged.

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
        borders: indices of rows and columns; a line is drawn before the row and before the column with each index.
        details: the tooltip of the caption; empty for the caption itself.
        knob: the setting under the title.
        tooltip: the tooltip of the title; empty for the title itself.
        settings_label: the name of the button next to the title that opens the panel's settings; empty for no button.
        frames: the caption in each frame of the board's animation; empty for a panel that does not change.
        mark: the colour of a square before the title, ``#rrggbb``; empty for none.
        group: the ``Category.group`` whose colours are explained above this panel, not in the legend; empty for none.
        top: a lower bound for the end of the colour scale, so that matrices drawn one after another share a scale.
        scale_panel: on a board with a scale per panel, the title of the panel whose colour bar this panel shares;
            empty for a colour bar of its own.
        full_side: the number of rows or columns that fill the panel, so that smaller matrices are drawn smaller; 0 to
            fill the panel with every matrix.
        sign: the sign between this panel and the one before it, such as ``×``; empty for none. A board with signs is an
            equation, whose panels are as narrow as their matrices and share one line if it is wide enough.
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
    full_side: int = 0
    sign: str = ""
