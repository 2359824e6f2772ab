"""The origin that every exported file states: page, text, model, layer, head, settings, and a link to the screen."""

import csv
import io
import json
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping

import numpy as np
import streamlit as st

from app.page import discover
from app.state import url
from app.state.session import SharedOptions
from app.ui import input_forms
from app.ui.scope import Scope
from app.words.i18n import _
from attention_core.inputs.upload import PROVENANCE

MAX_TEXT = 500
"""Largest number of characters of the text that a file repeats; the link holds the whole text if it fits."""
MEMBER = PROVENANCE
"""Name of the array of an NPZ file that holds the origin as a JSON string.

In a CSV file, the names of the origin's columns begin with this name, because a table may have its own head or
layer column.
"""

PAGE = "provenance.page"
"""Session key of the page that is drawn."""
SCOPE = "provenance.scope"
"""Session key of the scope of the page's numbers."""
Origin = Mapping[str, str]


def store_page(page: str, scope: Scope | None) -> None:
    """Store the drawn page's name and which heads and tokens its numbers are about (``scope``; None without input)."""
    st.session_state[PAGE], st.session_state[SCOPE] = page, scope


def shorten(text: str) -> str:
    """Return the first ``MAX_TEXT`` characters of a text, with an ellipsis if it is longer."""
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def own_text() -> str:
    """Return the beginning of the visitor's text; empty for other kinds of input."""
    kind = discover()[st.session_state[PAGE]].input_kind(SharedOptions.current())
    return shorten(SharedOptions.text.value) if kind == "text" else ""


def read_origin(title: str, *, whole_input: bool = False) -> Origin:
    """Return facts on the origin of the numbers on screen, by name, such as model and layer; empty ones are left out.

    Args:
        title: title of what is saved.
        whole_input: whether the file holds all heads and tokens of the input, independent of what the page shows.
    """
    page = discover()[st.session_state[PAGE]]
    kind = page.input_kind(SharedOptions.current())
    scope: Scope = st.session_state[SCOPE] or Scope()
    if whole_input:
        scope = scope.with_all_heads()
    facts = {"title": f"{_(page.title)} · {title}"}
    if page.uses_input:
        has_name = kind != "upload" or input_forms.UPLOAD in st.session_state
        facts |= {
            "input": kind,
            "text": own_text(),
            "model": input_forms.forms()[kind].name() if has_name else "",
            "layer": str(SharedOptions.layer.value) if kind in ("text", "trained") else "",
            "sequence": str(SharedOptions.sequence.value) if kind == "trained" else "",
            "head": scope.describe_file_heads() if scope.heads else "",
            "tokens": scope.describe_tokens() if scope.heads else "",
        }
    words = [attention.word for attention in SharedOptions.variants.value] if scope.variants is None else scope.variants
    causal = SharedOptions.causal.value if scope.causal is None else scope.causal
    facts |= {
        **scope.facts,
        "causal": "" if whole_input else _("yes") if causal else _("no"),
        "settings": " ".join(words),
        "link": (st.context.url or "").split("?")[0] + url.query_string(url.current_query()),
        "made with": "Attention Lab",
    }
    return {name: value for name, value in facts.items() if value}


def add_to_csv(data: bytes, origin: Origin, escape: Callable[[object], object]) -> bytes:
    """Add a column for each entry of the origin to a CSV file, filled in the first row and empty in all others.

    Every row gets the same number of fields, as pyarrow and DuckDB require.

    Args:
        data: CSV file with column names in its first row; returned unchanged if it has no other row.
        origin: origin from `read_origin`.
        escape: makes a cell safe from evaluation by spreadsheets.
    """
    bom = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    header, first = next(rows, None), next(rows, None)
    if header is None or first is None:
        return data
    buffer, empty = io.StringIO(newline=""), [""] * len(origin)
    writer = csv.writer(buffer)
    writer.writerow(header + [f"{MEMBER} {name}" for name in origin])
    writer.writerow(first + [str(escape(value)) for value in origin.values()])
    writer.writerows(row + empty for row in rows)
    return bom + buffer.getvalue().encode()


def add_to_npz(data: bytes, origin: Origin) -> bytes:
    """Return an NPZ file with the origin added as one more array, a JSON string."""
    file, array = io.BytesIO(data), io.BytesIO()
    np.save(array, np.array(json.dumps(origin, ensure_ascii=False)), allow_pickle=False)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{MEMBER}.npy", array.getvalue())
    return file.getvalue()
