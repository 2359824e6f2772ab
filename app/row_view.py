"""The pinned query: its text coloured by one variant's weights, and its bars for all variants together."""

import html
from collections.abc import Mapping

import numpy as np
import streamlit as st

from app import chart, share
from app.figures.bars import row_bars
from app.text import _


def show(
    matrices: Mapping[str, np.ndarray],
    names: Mapping[str, str],
    words: tuple[str, ...],
    labels: tuple[str, ...],
    *,
    unit: str,
) -> None:
    """Draw the row of the query in ``st.session_state["row"]``, with a picker for it.

    Args:
        matrices: ``[n, n]`` by the variant's key.
        names: the variants' names on screen.
        words: one token per position.
        labels: the same, repeats numbered.
        unit: what the numbers are, for the axis.
    """
    state = st.session_state
    left, middle, right = st.columns([4, 4, 2], vertical_alignment="bottom")
    left.selectbox(
        _("Pinned query"),
        range(len(words)),
        index=None,
        key="row",
        format_func=lambda i: f"{i}  {labels[i]}",
        placeholder=_("Click a cell, or pick a token here"),
    )
    if state["row"] is None:
        return
    rows = {key: values[state["row"]] for key, values in matrices.items()}
    key = middle.selectbox(
        _("Colour the text by"),
        list(rows),
        format_func=names.__getitem__,
        **share.mirror("coloured", list(rows), next(iter(rows)), key="row.variant"),
    )
    with right:
        chart.choose_format()
    st.html(coloured_text(rows[key], words, pinned=state["row"]))
    chart.show(
        row_bars({names[key]: row for key, row in rows.items()}, labels, key_title=_("key"), value_title=unit),
        key="row.bars",
        name="pinned-row",
        alt=_("Bars: the weight of query {row} on each key, for every variant", row=state["row"]),
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
