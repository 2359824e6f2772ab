"""Buttons that download a page's numbers as CSV or NPZ, and boxes with the formula and the code that compute them."""

import io
import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from app.ui import export_metadata
from app.ui.lazy import lazy_expander
from app.words.i18n import _

FORMULA = re.compile("[=+\\-@\uff1d\uff0b\uff0d\uff20].|[\\t\\r\\n]", re.DOTALL)
"""Beginning of a cell that a spreadsheet would evaluate as a formula. A single character is not evaluated."""


def _escape_formula(cell: object) -> object:
    """Return a cell that no spreadsheet evaluates: text that begins like a formula gets an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return rows as CSV in UTF-8 with a byte order mark, which spreadsheets need to read non-Latin scripts."""
    cells = [[_escape_formula(cell) for cell in row] for row in rows]
    table = pd.DataFrame(cells, columns=[_escape_formula(name) for name in header], dtype=object)
    return table.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def rows_to_csv(rows: Sequence[Any], **units: str) -> bytes:
    """Return rows of an experiment as CSV; a row is empty in the columns that only rows of other classes have.

    Args:
        rows: data class instances.
        units: units by the names of their columns, whose headers show them.
    """
    names = list(dict.fromkeys(field.name for kind in dict.fromkeys(map(type, rows)) for field in fields(kind)))
    header = [f"{name} ({units[name]})" if name in units else name for name in names]
    return to_csv(header, ([getattr(row, name, None) for name in names] for row in rows))


def to_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays by name as a compressed NPZ file; an array of objects raises ValueError."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def matrix_rows(
    matrices: Mapping[str, np.ndarray], tokens: Sequence[str], key_tokens: Sequence[str] | None = None
) -> list[list[object]]:
    """Return one row per variant, query and key: name, query index and label, key index and label, weight.

    Args:
        matrices: ``[queries, keys]`` by the variant's name; NaN for masked pairs, which are left out.
        tokens: labels of the queries.
        key_tokens: labels of the keys; None if they are those of the queries.
    """
    keys = tokens if key_tokens is None else key_tokens
    rows: list[list[object]] = []
    for name, values in matrices.items():
        for i, j in np.argwhere(~np.isnan(values)).tolist():
            rows.append([name, i, tokens[i], j, keys[j], float(values[i, j])])
    return rows


def download(
    label: str,
    data: Callable[[], bytes],
    file_name: str,
    *,
    whole_input: bool = False,
    kind: Literal["secondary", "tertiary"] = "secondary",
) -> None:
    """Draw a button that builds the file only when it is pressed; CSV and NPZ files also state their origin.

    Args:
        label: label of the button.
        data: returns the content of the file; runs in a thread without a Streamlit session. Each session stores
            this function while the page is open, so it must read large results from the caches, not hold them.
        file_name: name of the saved file.
        whole_input: whether the file holds all heads and tokens of the input, independent of what the page shows.
        kind: type of the button.
    """
    mime, origin = mimetypes.guess_type(file_name)[0], export_metadata.read_origin(label, whole_input=whole_input)

    def build() -> bytes:
        if file_name.endswith(".csv"):
            return export_metadata.add_to_csv(data(), origin, _escape_formula)
        return export_metadata.add_to_npz(data(), origin) if file_name.endswith(".npz") else data()

    st.download_button(
        label,
        build,
        file_name,
        mime,
        key=file_name,
        icon=":material/download:",
        on_click="ignore",
        type=kind,
        width="content",
    )


def draw_formula(title: str, formula: str, explanation: str, *, key: str) -> None:
    """Draw an expander with a formula and its explanation; ``key`` is the expander's key."""

    def draw() -> None:
        st.latex(formula)
        st.markdown(explanation)

    lazy_expander(title, draw, key=key)


def draw_snippet(code: str) -> None:
    """Draw code to copy."""
    st.caption(_("This code runs wherever attention_core is installed:"))
    st.code(code, language="python")
