"""What stands below the board on the Matrices page: the numbers, the mathematics, and what to take away."""

import streamlit as st

import attention_core as ac
from app import explain, share, takeaway
from app.comparison import Found
from app.input_panel import Chosen
from app.inside import link
from app.text import _
from app.variant_picker import REFERENCE, label
from attention_core.variant import Paper


def show(found: Found, chosen: Chosen) -> None:
    """What stands below the board: the numbers, the mathematics, and what to take away."""
    names = {"numbers": _("Numbers"), "explain": _("Formula and code"), "download": _("Take away")}
    st.segmented_control(
        _("More"), list(names), key="more", format_func=names.__getitem__, required=True, label_visibility="collapsed"
    )
    {"numbers": _numbers, "explain": _explain, "download": _download}[st.session_state["more"]](found, chosen)


def _numbers(found: Found, chosen: Chosen) -> None:
    rows = [
        {
            _("variant"): label(attention),
            _("row sums"): f"{m.passport.row_sum_min:.3g} … {m.passport.row_sum_max:.3g}",
            _("negative mass"): m.passport.negative_mass,
            _("density"): m.passport.density,
            _("rank"): m.passport.rank,
            _("effective rank"): m.passport.effective_rank,
            _("entropy (nats)"): m.passport.entropy,
            _("held against"): explain.reference(attention),
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
    if len(found.words) < chosen.qkv.n:
        st.caption(_("Hidden special tokens take part in the output error, and in no other number."))
    for attention in found.matrices:
        if attention.variant.reference is not None:
            st.caption(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))


def _explain(found: Found, chosen: Chosen) -> None:
    attentions = {a.key: a for a in st.session_state["variants"]}
    titles = {key: _(a.title) for key, a in attentions.items()}
    key = st.pills(
        _("Variant"),
        list(titles),
        format_func=titles.__getitem__,
        required=True,
        **share.mirror("explained", list(titles), REFERENCE, key="explain.variant"),
    )
    attention = attentions[key]
    if attention in found.matrices:
        st.markdown(explain.in_one_sentence(attention, found.matrices[attention]))
    link.show(attention)
    about(attention, chosen)


def about(attention: ac.Attention, chosen: Chosen) -> None:
    """A variant's formula, cost on this input, source and code."""
    variant = attention.variant
    st.markdown(_(variant.summary))
    st.latex(variant.formula)
    cost = variant.cost(chosen.qkv.n, chosen.qkv.q.shape[-1], attention.params, causal=False)
    full = ac.get("softmax").cost(chosen.qkv.n, chosen.qkv.q.shape[-1])
    st.markdown(
        _(
            "Time grows as **{complexity}**: {own:,} multiply-adds per head with values as long as "
            "keys, {share:.2f} times softmax's.",
            complexity=variant.complexity,
            own=cost.multiply_adds,
            share=cost.multiply_adds / full.multiply_adds,
        )
    )
    if variant.causal_reason:
        st.markdown(_("**Not causal:** {reason}", reason=_(variant.causal_reason)))
    if variant.note:
        st.markdown(_(variant.note))
    told = f"{_('Source')}: {_cited(variant.source)}"
    if variant.further:
        told += f"; {_('see also')} " + ", ".join(map(_cited, variant.further))
    st.markdown(told)
    takeaway.snippet(attention.snippet())
    with st.expander(_("The variant's own file")):
        st.code(variant.source_code(), language="python")


def _cited(paper: Paper) -> str:
    return f"[{paper.title} ({paper.year})]({paper.url})"


def _download(found: Found, chosen: Chosen) -> None:
    st.caption(_("The board's own buttons save it as a picture (PNG, SVG). Here are the numbers, in full precision."))
    shown, qkv = found.shown, chosen.qkv
    header = (_("variant"), _("query"), _("query token"), _("key"), _("key token"), found.unit)
    with st.container(horizontal=True):
        takeaway.download(
            _("Matrices (CSV)"),
            lambda: takeaway.to_csv(header, takeaway.matrix_rows(shown, found.labels)),
            "matrices.csv",
            "text/csv",
            "matrices.csv",
        )
        takeaway.download(
            _("Matrices (NPZ)"),
            lambda: takeaway.to_npz({a.key: m.weights for a, m in found.matrices.items()}),
            "matrices.npz",
            "application/octet-stream",
            "matrices.npz",
        )
        takeaway.download(
            _("Q, K, V (NPZ)"), lambda: ac.inputs.to_npz(qkv), "qkv.npz", "application/octet-stream", "matrices.qkv"
        )
    takeaway.snippet(
        "import attention_core as ac\n\n"
        'qkv = ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")\n'
        + "".join(
            f"{a.key} = ac.get({a.key!r}{''.join(f', {k}={getattr(a.params, k)!r}' for k in a.params.changed())})"
            f".weights(qkv.q, qkv.k, causal={st.session_state['causal'] and a.variant.causal_reason is None})\n"
            for a in st.session_state["variants"]
        )
    )
