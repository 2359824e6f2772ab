"""The pictures of stories: matrices on the board, lines, clouds of points, bars. A story hands in numbers and words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from app.figures.bars import grouped_bars
from app.figures.curves import Curve, curves
from app.figures.scatter import Points, scatter
from app.matrix_board import Panel, matrix_board
from app.ui import chart
from app.words.i18n import _
from pages.inside.story import Seen


def panel(
    title: str,
    values: np.ndarray,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    row: str = "",
    column: str = "",
    caption: str = "",
) -> Panel:
    """One matrix on a board.

    Args:
        title: its name, short.
        values: ``[rows, columns]``, at least one cell, finite or NaN (masked).
        rows: one label per row; None numbers them.
        columns: one label per column.
        row: what one row is, in the singular: ``_("landmark")``; a query if empty.
        column: what one column is; a key if empty.
        caption: a short line under the title.
    """
    return Panel(title, title, caption, values, rows, columns, row or _("query"), column or _("key"))


def pairs(seen: Seen, title: str, values: np.ndarray, caption: str = "") -> Panel:
    """A matrix of all queries and keys, masked where the query may not see the key."""
    return panel(title, seen.masked(values), seen.labels, seen.labels, caption=caption)


def earlier(
    seen: Seen, title: str, values: np.ndarray, *, row: str, column: str = "", with_itself: bool = False
) -> Panel:
    """A matrix of all tokens and those before each, masked where there is none.

    Args:
        seen: whose tokens.
        title: as of ``panel``.
        values: ``[n, n]``.
        row: what one row is.
        column: what one column is; a token before if empty.
        with_itself: whether a token counts among those before it.
    """
    shown = np.where(np.tri(len(values), k=0 if with_itself else -1, dtype=bool), values, np.nan)
    return panel(title, shown, seen.labels, seen.labels, row=row, column=column or _("token before"))


def board(
    key: str,
    *panels: Panel,
    tone: Literal["linear", "sqrt", "log"] = "sqrt",
    **told: Any,  # noqa: ANN401 - arguments of the board
) -> None:
    """Matrices side by side; those of one shape share crosshair and zoom.

    Args:
        key: the element's key.
        panels: the matrices, of any shapes.
        tone: how values become colours.
        told: further arguments of `app.matrix_board.matrix_board`.
    """
    numbered = [replace(each, key=str(i)) for i, each in enumerate(panels)]
    matrix_board(numbered, key=key, transform=tone, panel_size=420, file_name="inside", **told)


def features(seen: Seen, q: np.ndarray, k: np.ndarray, key: str, captions: Sequence[str] = ("", "")) -> None:
    """The features of queries and keys side by side, ``[n, C]`` both."""
    named = zip(("φ(q)", "φ(k)"), (q, k), captions, strict=True)
    words = {"row": _("token"), "column": _("feature")}
    shown = (panel(title, values, seen.labels, caption=caption, **words) for title, values, caption in named)
    board(key, *shown, unit=_("feature"))


def lines(of: Sequence[Curve], *, key: str, alt: str, height: int = 360, **told: Any) -> None:  # noqa: ANN401
    """Lines over an axis; ``alt`` is the picture in one sentence, the rest as of `app.figures.curves.curves`."""
    chart.show(curves(of, height=height, **told), key=key, name="inside", alt=alt)


def cloud(of: Sequence[Points], *, key: str, alt: str, **told: Any) -> None:  # noqa: ANN401
    """Estimated (y) against true (x) values with the diagonal; arguments as of `app.figures.scatter.scatter`."""
    chart.show(scatter(of, diagonal=_("equal"), log=True, **told), key=key, name="inside", alt=alt)


def bars(
    series: Mapping[str, Sequence[float] | np.ndarray],
    labels: Sequence[str],
    *,
    key: str,
    alt: str,
    height: int = 320,
    **told: Any,  # noqa: ANN401 - arguments of the figure
) -> None:
    """One bar per label and series; arguments as of `app.figures.bars.grouped_bars`."""
    chart.show(grouped_bars(series, labels, height=height, **told), key=key, name="inside", alt=alt)
