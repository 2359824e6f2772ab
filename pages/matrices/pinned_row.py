"""The pinned query: its text coloured by one variant's weights, and its bars for all variants together."""

import html

import numpy as np
import streamlit as st

from app import chart
from app.figures.bars import row_bars
from app.text import _
from pages.matrices.comparison import Found
from pages.matrices.options import MatricesOptions


def show(found: Found) -> None:
    """Draw the pinned query's row in every variant, with a picker for it."""
    left, middle, right = st.columns([4, 4, 2], vertical_alignment="bottom")
    with left:
        row = MatricesOptions.row.draw(
            options=range(len(found.words)),
            index=None,
            format_func=lambda i: f"{i}  {found.labels[i]}",
            placeholder=_("Click a cell, or pick a token here"),
        )
    if row is None:
        return
    rows, names = {key: values[row] for key, values in found.shown.items()}, found.names
    with middle:
        key = MatricesOptions.coloured.draw_among(
            list(rows), next(iter(rows)), key="row.variant", format_func=names.__getitem__
        )
    with right:
        chart.choose_format()
    bars = {names[key]: values for key, values in rows.items()}
    st.html(coloured_text(rows[key], found.words, pinned=row))
    chart.show(
        row_bars(bars, found.labels, key_title=_("key"), value_title=found.unit),
        key="row.bars",
        name="pinned-row",
        alt=_("Bars: the weight of query {row} on each key, for every variant", row=row),
    )


def coloured_text(row: np.ndarray, words: tuple[str, ...], *, pinned: int) -> str:
    """The text as HTML, each token shaded by its share of the row's largest weight, negative ones in red.

    Args:
        row: ``[n]``; NaN where the query may not look, drawn struck out.
        words: one token per position.
        pinned: the query, drawn with a frame.
    """
    top = float(np.nanmax(np.abs(row))) if np.isfinite(row).any() else 0.0
    spans = []
    for j, (value, token) in enumerate(zip(row.tolist(), words, strict=True)):
        masked = value != value
        share = 0.0 if masked or not top else abs(value) / top
        colour = "214, 39, 40" if value < 0 else "31, 119, 180"
        style = f"background:rgba({colour},{0.75 * share:.3f});padding:1px 3px;border-radius:3px;"
        style += "opacity:.35;text-decoration:line-through;" if masked else ""
        style += "outline:2px solid currentColor;" if j == pinned else ""
        told = _("masked") if masked else f"{value:.3g}"
        spans.append(f'<span style="{style}" title="{j}: {told}">{html.escape(token)}</span>')
    return f'<p style="line-height:1.9;overflow-wrap:anywhere" dir="auto">{" ".join(spans)}</p>'
