"""Step navigation of the Inside page, and the drawing of the current step."""

from collections.abc import Sequence

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.state.session import SharedOptions
from app.ui.input_panel import ChosenInput
from app.words.i18n import _, paragraph
from app.words.labels import computing
from attention_core.inputs.labels import number_repeats
from pages.inside import take_away
from pages.inside.options import InsideOptions
from pages.inside.stories import discover
from pages.inside.story import Later, Seen, Step


def show(chosen: ChosenInput) -> None:
    """Compute the chosen variant on the chosen input and draw the current step of its story."""
    attention: ac.Attention = InsideOptions.attention.value
    causal = SharedOptions.causal.value
    if causal and attention.variant.causal_reason:
        hidden = chosen.qkv.causal and chosen.qkv.n > 1
        share = cached.future_share(chosen.source, head=chosen.head or 0) if hidden else None
        st.caption(f":material/block: {refusal(attention, share, chosen.head or 0)}")
        causal = False
    if chosen.head is None:
        st.caption(
            ":material/info: " + _("Showing head 0, because an average over heads cannot be broken down into steps.")
        )
    head = chosen.head or 0
    with computing(_(attention.title)):
        found = cached.inside(chosen.source, attention, head, causal)
        seen = Seen(
            attention=attention,
            source=chosen.source,
            qkv=chosen.qkv,
            head=head,
            causal=causal,
            parts=found.parts,
            weights=found.weights,
            reference=found.reference,
            labels=number_repeats(chosen.qkv.tokens),
        )
        steps = discover()[attention.key](seen)
        number = _pick([step.title for step in steps])
        step = steps[number - 1]
        findings = step.findings  # Building a step may take long, so it happens inside `computing`.
    _draw(step, findings, f"inside.{attention.key}.{number}")
    take_away.show(seen, chosen)


def refusal(attention: ac.Attention, future_share: float | None, head: int) -> str:
    """Return the sentence that says why a variant is shown without the causal mask.

    Args:
        attention: the variant.
        future_share: the share of softmax's mass on later tokens if the model itself hides them, otherwise None.
        head: the head in which that share is measured.
    """
    text = _(
        "{name} cannot be causal: {reason} It is shown without the mask.",
        name=_(attention.title),
        reason=_(attention.variant.causal_reason or ""),
    )
    if future_share is not None:
        text = paragraph(
            text,
            _(
                "The model masks later tokens. Without the mask, {share:.0%} of the softmax weight in head "
                "{head} falls on later tokens.",
                share=future_share,
                head=head,
            ),
        )
    return text


def _pick(titles: Sequence[str]) -> int:
    """Draw the tabs of the steps, and return the number of the current step.

    A link to a step beyond the last, from a time when the story had more, opens the last step.
    """
    last = len(titles)
    if InsideOptions.step.value > last:
        st.caption(":material/info: " + _("This variant has only {n} steps. The last step is shown.", n=last))
        InsideOptions.step.set(last)
    shown = InsideOptions.step.restrict_to(range(1, last + 1))
    names = {i: f"{i} · {title}" for i, title in enumerate(titles, 1)}
    InsideOptions.step.draw(
        options=list(names), format_func=names.__getitem__, required=True, label_visibility="collapsed", width="content"
    )
    return shown


def _draw(step: Step | Later, findings: str, key: str) -> None:
    """Draw a step: its mechanism, its formula with the sizes of the arrays on hover, its figures and its findings."""
    sizes = "  \n".join(rf"${symbol} = [{', '.join(map(str, shape))}]$" for symbol, shape in step.shapes.items())
    with st.container(gap=None):
        st.markdown(step.mechanism)
        # The page clips formulas at their box, but a numerator can extend above it. An invisible strut makes room.
        st.latex(rf"\rule{{0pt}}{{1.5em}}{step.formula}", help=_("Sizes: {sizes}", sizes=f"  \n{sizes}"))
    step.draw(key)
    if findings:
        st.markdown(findings)
