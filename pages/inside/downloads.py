"""The end of the Inside page: the variant's formula and code, downloads, and Python code for the same numbers."""

from functools import partial

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.ui import about, export
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.words.i18n import _
from attention_core.inputs.source import Source
from pages.inside.story import HeadData


def show(data: HeadData, chosen: ChosenInput) -> None:
    """Draw the collapsed sections with the variant's formula and code, and with downloads of the shown numbers."""
    lazy_expander(_("Formula and code"), partial(about.show, data.attention, chosen), key="inside.about")
    lazy_expander(_("Export"), partial(_show_files, data), key="inside.files")


def _show_files(data: HeadData) -> None:
    with st.container(horizontal=True):
        parts = partial(_parts, data.source, data.attention, data.head, causal=data.causal)
        export.download(_("All intermediate results (NPZ)"), parts, f"{data.attention.key}-inside.npz")
        source = data.source
        export.download(
            _("Q, K, V (NPZ)"), lambda: ac.inputs.to_npz(cached.record(source)), "qkv.npz", whole_input=True
        )
    export.draw_snippet(snippet(data))


def _parts(source: Source, attention: ac.Attention, head: int, *, causal: bool) -> bytes:
    result = cached.inside(source, attention, head, causal)
    return export.to_npz({**result.parts, "weights": result.weights, "reference": result.reference})


def snippet(data: HeadData) -> str:
    """Return Python code that computes the variant's intermediate results from the downloaded input."""
    params = data.attention.params
    changed = "".join(f", {name}={getattr(params, name)!r}" for name in params.changed())
    return (
        "import attention_core as ac\n"
        "from attention_core.analysis.matrix.inside import intermediate_results\n\n"
        'qkv = ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")\n'
        f'attention = ac.get("{data.attention.key}"{changed})\n'
        f"inside = intermediate_results(qkv, attention, head={data.head}, causal={data.causal})\n"
        "for name, part in inside.parts.items():\n"
        "    print(name, part.shape)\n"
    )
