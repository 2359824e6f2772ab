"""What a board shows: its matrices, and the kinds their numbers may stand for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Category:
    """What a whole number on a board of categories stands for.

    Attributes:
        name: in words, on hover and in the legend.
        light: its colour on a light page, ``#rrggbb``.
        dark: its colour on a dark page.
        listed: whether the legend shows it; one that mixes others need not be.
    """

    name: str
    light: str
    dark: str
    listed: bool = True


@dataclass(frozen=True)
class Knob:
    """A setting that is turned on its panel, which is drawn anew while that is done.

    Attributes:
        name: on screen.
        stops: the values there are, in their order.
        value: the one the panel shows, among them.
    """

    name: str
    stops: Sequence[float]
    value: float


@dataclass(frozen=True, eq=False)
class Panel:
    """One matrix on the board.

    Attributes:
        key: names the panel in the page's markup.
        title: the name shown over the matrix.
        caption: a short line under the title.
        values: ``[rows, cols]``, finite, or NaN where a row may not look at a column.
        row_labels: one label per row where these are not the board's rows.
        col_labels: one label per column where these are not the board's columns.
        row_title: what its rows are where these are not the board's rows, on the axis and in the readout.
        col_title: the same for its columns.
        borders: indices before which a line crosses the matrix, over rows and columns alike.
        knob: the setting turned under its title.
        settings: what the button is called that opens its other settings; empty: it has none.
        top: where its colours end if not at its own largest magnitude, so that matrices shown in turn can be compared.
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
    knob: Knob | None = None
    settings: str = ""
    top: float = 0.0
