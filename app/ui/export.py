"""What stands behind a view: its formula, its numbers as CSV and NPZ, and the lines of Python that make it again."""

import io
import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.ui import export_metadata
from app.ui.lazy import fold
from app.words.i18n import _

FORMULA = re.compile("[=+\\-@\uff1d\uff0b\uff0d\uff20].|[\\t\\r\\n]", re.DOTALL)
"""How a cell begins that a spreadsheet computes; a sign alone is only shown."""


def _as_words(cell: object) -> object:
    """A cell that a spreadsheet shows and never computes: words that begin like a formula follow an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as UTF-8 with a mark, which spreadsheets need to read other scripts."""
    cells = [[_as_words(cell) for cell in row] for row in rows]
    table = pd.DataFrame(cells, columns=[_as_words(name) for name in header], dtype=object)
    return table.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def csv_of(rows: Sequence[Any], **units: str) -> bytes:
    """Rows of an experiment, frozen dataclasses, as CSV; of several kinds each leaves the others' columns empty.

    Args:
        rows: of any number.
        units: of columns that need one in their name.
    """
    names = list(dict.fromkeys(field.name for kind in dict.fromkeys(map(type, rows)) for field in fields(kind)))
    header = [f"{name} ({units[name]})" if name in units else name for name in names]
    return to_csv(header, ([getattr(row, name, None) for name in names] for row in rows))


def to_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays by name, compressed; none of them an object."""
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def matrix_rows(matrices: Mapping[str, np.ndarray], tokens: Sequence[str]) -> list[list[object]]:
    """One row per variant, query and key, masked pairs left out."""
    rows: list[list[object]] = []
    for name, values in matrices.items():
        for i, j in np.argwhere(~np.isnan(values)).tolist():
            rows.append([name, i, tokens[i], j, tokens[j], float(values[i, j])])
    return rows


def download(label: str, data: Callable[[], bytes], file_name: str, *, whole_input: bool = False) -> None:
    """A button that makes the file when it is pressed, not before; a CSV and an NPZ say where they come from.

    Args:
        label: of the button.
        data: makes what stands in the file, in a thread that knows of no visitor. Each visitor who was offered it holds
            it for as long as the page is open, so it finds what is large again, in the caches, and holds none of it.
        file_name: as it is saved.
        whole_input: whether the file holds all heads and tokens of the input, whatever the page shows of it.
    """
    mime, origin = mimetypes.guess_type(file_name)[0], export_metadata.now(label, whole_input=whole_input)

    def made() -> bytes:
        if file_name.endswith(".csv"):
            return export_metadata.in_csv(data(), origin, _as_words)
        return export_metadata.in_npz(data(), origin) if file_name.endswith(".npz") else data()

    st.download_button(
        label, made, file_name, mime, key=file_name, icon=":material/download:", on_click="ignore", width="content"
    )


def explained(title: str, formula: str, words: str, *, key: str) -> None:
    """What stands behind a view, folded up: a formula and what it says; ``key`` is the line's."""

    def draw() -> None:
        st.latex(formula)
        st.markdown(words)

    fold(title, draw, key=key, icon=":material/function:")


def snippet(code: str) -> None:
    """Code to copy."""
    st.caption(_("Runs as it stands wherever attention_core is installed:"))
    st.code(code, language="python")
