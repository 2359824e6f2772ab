"""The description of one attention variant: formula, cost, source, code, and a link to its step-by-step view."""

import streamlit as st

import attention_core as ac
from app.state.session import REFERENCE, SharedOptions, opens_causal
from app.ui import export, navigation
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.words.i18n import _, enumeration, escape_markdown, paragraph
from app.words.labels import paper_heading
from attention_core.variant import Paper


def show(attention: ac.Attention, chosen: ChosenInput) -> None:
    """Draw a variant's formula, its cost on this input, its source and its code."""
    variant = attention.variant
    st.markdown(_(variant.summary))
    st.latex(variant.formula)
    causal = SharedOptions.causal.value and variant.causal_reason is None
    assumed = (
        _("The count assumes values of the same size as keys (d_v = d).")
        if causal
        else _("The count assumes values of the same size as keys (d_v = d) and no causal mask.")
    )
    st.markdown(_cost(attention, chosen, causal=causal), help=paragraph(assumed, describe_counts()))
    if variant.causal_reason:
        st.markdown(_("**Not causal:** {reason}", reason=_(variant.causal_reason)))
    if variant.note:
        st.markdown(_(variant.note))
    st.markdown(sources(variant))
    export.draw_snippet(attention.snippet())
    st.markdown(_("Definition"))
    st.code(variant.definition_code(), language="python")
    lazy_expander(_("Source file"), lambda: st.code(variant.source_code(), language="python"), key="about.file")


def _cost(attention: ac.Attention, chosen: ChosenInput, *, causal: bool) -> str:
    qkv = chosen.qkv
    if qkv.crosses and attention.variant.cross_reason:
        return _("**Cannot use keys of another sequence:** {reason}", reason=_(attention.variant.cross_reason))
    return describe_cost(attention, n=qkv.n, d=qkv.q.shape[-1], heads=qkv.heads, keys=qkv.m, causal=causal)


def describe_cost(
    attention: ac.Attention, *, n: int, d: int, heads: int, keys: int | None = None, causal: bool = False
) -> str:
    """Return text on the cost of a variant: its multiply-adds per head, relative to softmax.

    Args:
        attention: the variant with its settings.
        n: number of tokens, or of queries.
        d: head size.
        heads: number of heads.
        keys: number of keys; None for n.
        causal: whether the variant and softmax have a causal mask.
    """
    cost, softmax_cost = (a.cost(n, d, causal=causal, heads=heads, keys=keys) for a in (attention, ac.get(REFERENCE)))
    fields = {
        "complexity": _(attention.variant.complexity),
        "own": cost.multiply_adds // heads,
        "share": cost.multiply_adds / softmax_cost.multiply_adds,
    }
    if attention.key == REFERENCE:
        return _("**O({complexity})**: {own:,} multiply-adds per head.", **fields)
    if cost.multiply_adds == softmax_cost.multiply_adds:
        return _("**O({complexity})**: {own:,} multiply-adds per head, as many as softmax.", **fields)
    return _("**O({complexity})**: {own:,} multiply-adds per head, {share:.2f}× as many as softmax.", **fields)


def describe_counts() -> str:
    """Return text that says which multiply-adds are counted."""
    return _(
        "The count includes the multiply-adds of matrix products, attention kernels and distance computations. It "
        "excludes elementwise functions, exact inverses and decompositions. Queries and keys are processed in blocks, "
        "and all pairs of a computed block count, even if the mask forbids some of them."
    )


def sources(variant: ac.Variant) -> str:
    """Return the citations of a variant (its source and further papers) as Markdown."""
    source, further = _citation(variant.source), enumeration(map(_citation, variant.further))
    if further:
        return _("Source: {source}. See also {further}", source=source, further=further)
    return _("Source: {source}", source=source)


def _citation(paper: Paper) -> str:
    return f"[{escape_markdown(paper_heading(paper))} ({paper.year})]({paper.url})"


def link_inside(attention: ac.Attention) -> None:
    """Draw a link to the step-by-step view of a variant on the same input, if the variant has one."""
    if attention.variant.anatomy:
        changes = {SharedOptions.causal.name: True} if opens_causal(attention.variant) else {}
        fields = {"inside": [attention.word], "step": ["0"]}  # The link opens the first step.
        navigation.link("inside", _("See it step by step"), icon=":material/biotech:", fields=fields, **changes)
