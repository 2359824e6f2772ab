"""About one variant: its formula, its cost on an input, its source, its code, and the way to see it taken apart."""

import streamlit as st

import attention_core as ac
from app import navigation, takeaway
from app.input_panel import Chosen
from app.text import _
from attention_core.variant import Paper


def show(attention: ac.Attention, chosen: Chosen) -> None:
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
            complexity=_(variant.complexity),
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


def link_inside(attention: ac.Attention) -> None:
    """A link that takes a variant apart on the same input; nothing for one without an inside worth seeing."""
    if attention.variant.anatomy:
        navigation.link("inside", _("Take it apart"), icon=":material/biotech:", fields={"inside": [attention.word]})
