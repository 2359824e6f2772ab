"""The downloads of the Matrices page: the matrices in full precision, and Python code that computes them again."""

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.ui import export
from app.words.i18n import _
from pages.matrices.comparison import Comparison, matrices_by_key


def show(comparison: Comparison) -> None:
    """Draw the download buttons and the code."""
    # The buttons' callbacks below use only these parts. With `comparison`, they would keep all matrices in memory.
    view, labels, keys, difference = comparison.view, comparison.labels, comparison.key_labels, comparison.difference
    all_variants, drawn = tuple(comparison.matrices), comparison.visible
    header = (_("variant"), _("query"), _("query token"), _("key"), _("key token"), comparison.unit)
    with st.container(horizontal=True):
        export.download(
            _("Matrices (CSV)"),
            lambda: export.to_csv(
                header, export.matrix_rows(matrices_by_key(view, drawn, difference=difference), labels, keys)
            ),
            "matrices.csv",
        )
        export.download(
            _("Matrices (NPZ)"),
            lambda: export.to_npz(matrices_by_key(view, all_variants, difference=False)),
            "matrices.npz",
        )
        export.download(
            _("Q, K, V (NPZ)"), lambda: ac.inputs.to_npz(cached.record(view.source)), "qkv.npz", whole_input=True
        )
    export.draw_snippet(_snippet(comparison))


def _snippet(comparison: Comparison) -> str:
    """Return Python code that computes the matrices of the NPZ file from the downloaded input."""
    qkv, view = comparison.chosen.qkv, comparison.view
    # The file of the input does not say which tokens the tokenizer added.
    hidden = [i for i, special in enumerate(qkv.special) if special] if comparison.hidden_tokens else []
    code = ["import attention_core as ac", "from attention_core.analysis.matrix.compare import compare", ""]
    code.append('qkv = ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")')
    if hidden:
        code = ["from dataclasses import replace", "", *code]
        code.append(f"qkv = replace(qkv, special=tuple(i in {hidden} for i in range(qkv.n)))")
    arguments = f"head={view.head}, causal={view.causal}, special={not hidden}"
    for each in comparison.matrices:
        changed = "".join(f", {name}={getattr(each.params, name)!r}" for name in each.params.changed())
        code.append(f"{each.key} = compare(qkv, ac.get({each.key!r}{changed}), {arguments}).weights")
    return "\n".join(code) + "\n"
