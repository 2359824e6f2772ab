"""Figures of the Inside page: boards (matrices side by side), curves, scatter plots, bars, and coloured symbols."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import streamlit as st

from app.figures.bars import grouped_bars
from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.figures.scatter import scatter
from app.matrix_board import Panel, matrix_board
from app.ui import chart, export_metadata
from app.words.i18n import _
from app.words.isolation import isolate
from app.words.labels import reference_name
from attention_core.analysis.matrix import inside
from pages.inside.story import HeadData

COLOURS = {"light": ("#1d7a3c", "#b5206a", "#6f6200", "#6f45c0"), "dark": ("#6fd08c", "#ff8ac0", "#d6c75c", "#c0a6ff")}
"""Colours of the symbols in a formula and of the marks before the titles of their panels, by theme.

All have a contrast of at least 4.5 to 1 with the page, as WCAG 2.2 requires for text (1.4.3). Blue and orange
are not used, because they show the signs of matrix entries.
"""
RESULT = 3
"""Index of the colour of the attention matrix A, in every step."""
MIN_VISIBLE = 0.02
"""Matrices share a colour scale if the largest value of each is at least this share of the largest value of all."""
MAX_WEIGHT = 1.001
"""Matrices with larger absolute entries do not share a colour scale: a matrix of normalised weights would be pale."""


def colour(index: int) -> str:
    """Return the colour with this index in the current theme, as a hexadecimal code."""
    return COLOURS["dark" if st.context.theme.type == "dark" else "light"][index]


def symbol(index: int, latex: str) -> str:
    """Return LaTeX code that shows a symbol in the colour that marks its panel.

    Args:
        index: index of the colour, which is the panel's ``mark``.
        latex: the symbol.
    """
    return rf"\textcolor{{{colour(index)}}}{{{latex}}}"


def panel(
    title: str,
    values: np.ndarray,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    row: str = "",
    column: str = "",
    caption: str = "",
    mark: int | None = None,
) -> Panel:
    """Return a matrix with its title and labels, as one panel of a board.

    Args:
        title: a short name of the matrix.
        values: ``[rows, columns]``, at least one cell, finite or NaN (masked).
        rows: one label per row; None numbers the rows.
        columns: one label per column; None numbers the columns.
        row: what one row is, in the singular, such as ``_("landmark")``; a query if empty.
        column: what one column is; a key if empty.
        caption: a short line under the title.
        mark: index of the colour of the matrix's ``symbol`` in the formula, shown before the title.
    """
    return Panel(
        title,
        title,
        caption,
        values,
        rows,
        columns,
        row or _("query"),
        column or _("key"),
        mark="" if mark is None else colour(mark),
    )


def pair_panel(data: HeadData, title: str, values: np.ndarray, caption: str = "", mark: int | None = None) -> Panel:
    """Return a panel of all query-key pairs, masked where the query must not attend to the key."""
    return panel(title, data.masked(values), data.labels, data.labels, caption=caption, mark=mark)


def result_panels(data: HeadData) -> tuple[Panel, Panel]:
    """Return the panels of the variant's attention matrix and of its reference, with which the first boards end.

    On a board with a scale per panel, both have one scale, unless the smaller values would hardly be visible on it.
    """
    variant_panel = pair_panel(data, _(data.attention.title), data.weights, _("the resulting matrix"))
    reference = reference_panel(data)
    low, high = sorted(float(np.abs(each).max()) for each in (data.weights, data.reference))
    if low < MIN_VISIBLE * high or high > MAX_WEIGHT:
        return replace(variant_panel, caption=_("the resulting matrix, on a colour scale of its own")), reference
    return replace(variant_panel, top=high), replace(reference, top=high, scale_panel=variant_panel.title)


def reference_panel(data: HeadData) -> Panel:
    """Return a panel of the reference, usually softmax. Its caption names the key of a strong column, if any."""
    caption = " · ".join(filter(None, (_("reference"), strong_column(data))))
    return pair_panel(data, reference_title(data), data.reference, caption)


def reference_title(data: HeadData) -> str:
    """Return the name of the reference with a capital letter."""
    name = reference_name(data.attention)
    return name[0].upper() + name[1:]


def strong_column(data: HeadData) -> str:
    """Return text that names the key of the reference's strong column; empty without one."""
    found = inside.strong_column(data.reference)
    return _("strong column: the key {token}", token=isolate(data.labels[found[0]])) if found else ""


def earlier_panel(
    data: HeadData, title: str, values: np.ndarray, *, row: str, diagonal: bool = False, mark: int | None = None
) -> Panel:
    """Return a panel of each token against the tokens before it; all other cells are masked.

    Args:
        data: the variant on a head, whose labels are used.
        title: a short name of the matrix.
        values: ``[n, n]``.
        row: what one row is.
        diagonal: whether the diagonal is shown too.
        mark: index of the colour of the matrix's ``symbol``.
    """
    shown = np.where(np.tri(len(values), k=0 if diagonal else -1, dtype=bool), values, np.nan)
    return panel(title, shown, data.labels, data.labels, row=row, column=_("earlier token"), mark=mark)


def board(
    key: str,
    *panels: Panel,
    tone: Literal["linear", "sqrt", "log"] = "sqrt",
    **settings: Any,  # noqa: ANN401 - arguments of the board
) -> None:
    """Draw matrices side by side; matrices of equal shape share crosshair and zoom.

    Args:
        key: the element's key.
        panels: the matrices, of any shapes.
        tone: the transform from values to colours.
        settings: further arguments of `app.matrix_board.matrix_board`.
    """
    numbered = [replace(each, key=str(i)) for i, each in enumerate(panels)]
    if settings.get("scale") == "panel":
        unit = (
            _("Blue: positive, orange: negative")
            if any((each.values < 0).any() for each in panels)
            else _("Colour: value of each entry")
        )
        settings = {"unit": unit, **settings}
    alone = len(panels) == 1
    with st.container(width=600 if alone else "stretch"):
        matrix_board(
            numbered,
            key=key,
            transform=tone,
            panel_size=520 if alone else 420,
            file_name="inside",
            text=export_metadata.own_text(),
            **settings,
        )


def features(data: HeadData, q: np.ndarray, k: np.ndarray, key: str, captions: Sequence[str] = ("", "")) -> None:
    """Draw the features of the queries ``q`` and of the keys ``k`` side by side, both ``[n, features]``."""
    named = enumerate(zip(("φ(q)", "φ(k)"), (q, k), captions, strict=True))
    words = {"row": _("token"), "column": _("feature")}
    shown = (
        panel(title, values, data.labels, caption=caption, mark=mark, **words)
        for mark, (title, values, caption) in named
    )
    board(key, *shown, unit=_("feature"))


def lines(curves_: Sequence[Curve], *, key: str, alt: str, height: int = 360, **settings: Any) -> None:  # noqa: ANN401
    """Draw curves; ``alt`` describes the figure in one sentence, ``settings`` go to ``curves``."""
    chart.show(curves(curves_, height=height, **settings), key=key, name="inside", alt=alt)


def scatter_plot(
    name: str,
    x: np.ndarray,
    y: np.ndarray,
    *,
    key: str,
    alt: str,
    **settings: Any,  # noqa: ANN401 - arguments of the figure
) -> None:
    """Draw estimated (y) over true (x) values with the diagonal; ``settings`` go to `app.figures.scatter.scatter`."""
    chart.show(scatter(name, x, y, diagonal=_("equal values"), **settings), key=key, name="inside", alt=alt)


def bars(
    series: Mapping[str, Sequence[float] | np.ndarray],
    labels: Sequence[str],
    *,
    key: str,
    alt: str,
    height: int = 320,
    **settings: Any,  # noqa: ANN401 - arguments of the figure
) -> None:
    """Draw one bar per label and series; ``settings`` go to `app.figures.bars.grouped_bars`."""
    chart.show(grouped_bars(series, labels, height=height, **settings), key=key, name="inside", alt=alt)
