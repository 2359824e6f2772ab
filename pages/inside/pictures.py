"""The pictures of stories: matrices on the board, lines, clouds of points, bars. A story hands in numbers and words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app import chart
from app.figures.bars import grouped_bars
from app.figures.curves import Curve, curves
from app.figures.scatter import Points, scatter
from app.matrix_board import Panel, matrix_board
from app.text import _
from pages.inside.story import Seen

Tone = Literal["linear", "sqrt", "log"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Grid:
    """One matrix among several on a board.

    Attributes:
        title: its name, short.
        values: ``[rows, columns]``, at least one cell, finite or NaN (masked).
        rows: one label per row; None numbers them.
        columns: one label per column.
        row_title: what one row is, in the singular: ``_("landmark")``; a query if empty.
        col_title: what one column is; a key if empty.
        caption: a short line under the title.
    """

    title: str
    values: np.ndarray
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    row_title: str = ""
    col_title: str = ""
    caption: str = ""


def pairs(seen: Seen, title: str, values: np.ndarray, caption: str = "") -> Grid:
    """A matrix of all queries and keys, masked where the query may not see the key."""
    return Grid(title=title, caption=caption, values=seen.masked(values), rows=seen.labels, columns=seen.labels)


def features(seen: Seen, q: np.ndarray, k: np.ndarray, key: str, captions: Sequence[str] = ("", "")) -> None:
    """The features of queries and keys side by side, ``[n, C]`` both."""
    panels = [
        Grid(
            title=title, caption=caption, values=values, rows=seen.labels, row_title=_("token"), col_title=_("feature")
        )
        for title, caption, values in zip(("φ(q)", "φ(k)"), captions, (q, k), strict=True)
    ]
    grids(panels, key, unit=_("feature"))


def grid(
    title: str,
    values: np.ndarray,
    key: str,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    row_title: str = "",
    col_title: str = "",
    unit: str | None = None,
    diverging: bool = False,
    caption: str = "",
    tone: Tone = "sqrt",
) -> None:
    """One matrix; arguments as of `Grid` and `grids`."""
    alone = Grid(
        title=title,
        values=values,
        rows=rows,
        columns=columns,
        row_title=row_title,
        col_title=col_title,
        caption=caption,
    )
    grids([alone], key, unit=unit, diverging=diverging, tone=tone)


def grids(
    panels: Sequence[Grid],
    key: str,
    *,
    unit: str | None = None,
    diverging: bool = False,
    tone: Tone = "sqrt",
    scale: Literal["shared", "panel"] = "shared",
    masked: str | None = None,
) -> None:
    """Matrices side by side; those of one shape share crosshair and zoom.

    Args:
        panels: the matrices, of any shapes.
        key: the element's key.
        unit: what the numbers are, "weight" if not given.
        diverging: the two-sided colours even where nothing is negative; where something is, they come by themselves.
        tone: how values become colours.
        scale: one colour scale for all, or one each.
        masked: what a cell without a number is, "masked" if not given.
    """
    matrix_board(
        [
            Panel(
                key=str(i),
                title=panel.title,
                caption=panel.caption,
                values=panel.values,
                row_labels=panel.rows,
                col_labels=panel.columns,
                row_title=panel.row_title or _("query"),
                col_title=panel.col_title or _("key"),
            )
            for i, panel in enumerate(panels)
        ],
        row_labels=None,
        col_labels=None,
        key=key,
        scale=scale,
        transform=tone,
        diverging=diverging,
        unit=unit,
        masked=masked,
        panel_size=420,
        file_name="inside",
    )


def lines(
    of: Sequence[Curve],
    *,
    key: str,
    x_title: str,
    y_title: str,
    alt: str,
    log_x: bool = False,
    log_y: bool = False,
    mark: float | None = None,
    x_ticks: Sequence[float] = (),
    height: int = 360,
) -> None:
    """Lines over an axis; ``alt`` is the picture in one sentence, the rest as of `app.figures.curves.curves`."""
    figure = curves(
        of, x_title=x_title, y_title=y_title, log_x=log_x, log_y=log_y, mark=mark, x_ticks=x_ticks, height=height
    )
    chart.show(figure, key=key, name="inside", alt=alt)


def cloud(
    of: Sequence[Points], *, key: str, x_title: str, y_title: str, alt: str, log: bool = False, height: int = 420
) -> None:
    """Estimated (y) against true (x) values with the diagonal; arguments as of `app.figures.scatter.scatter`."""
    figure = scatter(of, x_title=x_title, y_title=y_title, diagonal=_("equal"), log=log, height=height)
    chart.show(figure, key=key, name="inside", alt=alt)


def bars(
    series: Mapping[str, Sequence[float] | np.ndarray],
    labels: Sequence[str],
    *,
    key: str,
    x_title: str,
    y_title: str,
    alt: str,
    log: bool = False,
    stacked: bool = False,
    height: int = 320,
) -> None:
    """One bar per label and series; arguments as of `app.figures.bars.grouped_bars`."""
    figure = grouped_bars(series, labels, x_title=x_title, y_title=y_title, log=log, stacked=stacked, height=height)
    chart.show(figure, key=key, name="inside", alt=alt)
