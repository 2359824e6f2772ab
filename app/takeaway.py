"""Take away: the numbers behind a view as CSV and NPZ, and the lines of Python that make it again."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.text import _


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as UTF-8 with a mark, which spreadsheets need to read other scripts."""
    table = pd.DataFrame(rows, columns=list(header), dtype=object)
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


def download(label: str, data: Callable[[], bytes], file_name: str, mime: str, key: str) -> None:
    """A button that makes the file when it is pressed, not before."""
    st.download_button(
        label, data, file_name, mime, key=key, icon=":material/download:", on_click="ignore", width="content"
    )


def snippet(code: str) -> None:
    """Code to copy."""
    st.caption(_("Runs as it stands wherever attention_core is installed:"))
    st.code(code, language="python")
