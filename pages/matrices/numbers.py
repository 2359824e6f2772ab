"""Each variant's numbers on the input, its passport."""

import streamlit as st

from app.naming import label, reference_name
from app.text import _
from pages.matrices.comparison import Found


def show(found: Found) -> None:
    """Draw them as a table, with what its columns mean."""
    rows = [
        {
            _("variant"): label(attention),
            _("row sums"): f"{m.passport.row_sum_min:.3g} … {m.passport.row_sum_max:.3g}",
            _("negative mass"): m.passport.negative_mass,
            _("density"): m.passport.density,
            _("rank"): m.passport.rank,
            _("effective rank"): m.passport.effective_rank,
            _("entropy (nats)"): m.passport.entropy,
            _("held against"): reference_name(attention),
            _("matrix error"): m.passport.relative_error,
            _("output error"): m.output_error,
            _("total variation"): m.passport.total_variation,
            _("KL (nats)"): m.passport.kl,
            _("top-k overlap"): m.passport.top_k_overlap,
            _("causal"): _("yes") if attention.variant.causal_reason is None else _("no"),
            _("time"): attention.variant.complexity,
        }
        for attention, m in found.matrices.items()
    ]
    percent = st.column_config.NumberColumn(format="percent")
    three = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            **dict.fromkeys((_("negative mass"), _("density"), _("top-k overlap")), percent),
            **dict.fromkeys(
                (_("entropy (nats)"), _("matrix error"), _("output error"), _("total variation"), _("KL (nats)")), three
            ),
            _("effective rank"): st.column_config.NumberColumn(format="%.1f"),
        },
    )
    st.caption(
        _(
            "Errors, total variation, KL and top-k overlap are taken beside the matrix named under “held against”, on "
            "the same queries, keys and values. Matrix error: relative Frobenius norm. Output error: relative norm of "
            "A v. Total variation: mean over rows. KL: of the variant from that matrix, mean over rows. Entropy of "
            "signed rows: of their absolute values, normalised."
        )
    )
    if len(found.words) < found.chosen.qkv.n:
        st.caption(_("Hidden special tokens take part in the output error, and in no other number."))
    for attention in found.matrices:
        if attention.variant.reference is not None:
            st.caption(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))
