"""The end of the Inside page: the variant's formula and code, downloads, and Python code for the same numbers."""

from functools import partial

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.ui import about, chart, export
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.words.i18n import _
from attention_core.inputs.source import Source
from pages.inside.story import Seen


def show(seen: Seen, chosen: ChosenInput) -> None:
    """Draw the folds with the variant's formula and code, and with the downloads of the shown numbers."""
    lazy_expander(_("Formula and code"), partial(about.show, seen.attention, chosen), key="inside.about")
    lazy_expander(_("Export"), partial(_files, seen), key="inside.files")


def _files(seen: Seen) -> None:
    chart.choose_format()
    with st.container(horizontal=True):
        parts = partial(_parts, seen.source, seen.attention, seen.head, causal=seen.causal)
        export.download(_("All intermediate results (NPZ)"), parts, f"{seen.attention.key}-inside.npz")
        source = seen.source
        export.download(
            _("Q, K, V (NPZ)"), lambda: ac.inputs.to_npz(cached.record(source)), "qkv.npz", whole_input=True
        )
    export.snippet(snippet(seen))


def _parts(source: Source, attention: ac.Attention, head: int, *, causal: bool) -> bytes:
    found = cached.inside(source, attention, head, causal)
    return export.to_npz({**found.parts, "weights": found.weights, "reference": found.reference})


def snippet(seen: Seen) -> str:
    """Return the lines of Python that reproduce the intermediates of the variant."""
    params = seen.attention.params
    changed = "".join(f", {name}={getattr(params, name)!r}" for name in params.changed())
    return (
        "import attention_core as ac\n"
        "from attention_core.analysis.matrix.inside import look\n\n"
        'qkv = ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")\n'
        f'inside = look(qkv, ac.get("{seen.attention.key}"{changed}), head={seen.head}, causal={seen.causal})\n'
        "for name, part in inside.parts.items():\n"
        "    print(name, part.shape)\n"
    )
