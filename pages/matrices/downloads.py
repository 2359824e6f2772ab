"""The downloads of the Matrices page: the matrices in full precision, and Python code that computes them again."""

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.state.session import SharedOptions
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
    SharedOptions.picture.draw(label=_("Save bars as"))
    export.draw_snippet(
        "import attention_core as ac\n\n"
        'qkv = ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")\n'
        + "".join(
            f"{a.key} = ac.get({a.key!r}{''.join(f', {k}={getattr(a.params, k)!r}' for k in a.params.changed())})"
            f".weights(qkv.q, qkv.k, causal={SharedOptions.causal.value and a.variant.causal_reason is None})\n"
            for a in SharedOptions.variants.value
            if not (comparison.chosen.qkv.crosses and a.variant.cross_reason)
        )
    )
