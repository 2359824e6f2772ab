"""Step navigation of the Inside page, and the drawing of the current step."""

from collections.abc import Sequence
from functools import partial

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
        st.caption(":material/info: " + _("An average of heads has no inside; this is head 0."))
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
        sentence = step.sentence  # Building the sentence may take long, so it happens inside `computing`.
    _draw(step, sentence, f"inside.{attention.key}.{number}")
    take_away.show(seen, chosen)


def refusal(attention: ac.Attention, future_share: float | None, head: int) -> str:
    """Return the sentence that says why a variant is shown without the causal mask.

    Args:
        attention: the variant.
        future_share: the share of softmax's mass on later tokens if the model itself hides them, otherwise None.
        head: the head in which that share is measured.
    """
    text = _(
        "{name} cannot be causal: {reason} It is shown without.",
        name=_(attention.title),
        reason=_(attention.variant.causal_reason or ""),
    )
    if future_share is not None:
        text = paragraph(
            text,
            _(
                "The model hides the future: {share:.0%} of softmax's mass in head {head} then lies on later tokens, "
                "which it never sees.",
                share=future_share,
                head=head,
            ),
        )
    return text


def _pick(titles: Sequence[str]) -> int:
    """Draw the step picker with the buttons "Previous" and "Next", and return the number of the current step."""
    shown = InsideOptions.step.restrict_to(range(1, len(titles) + 1))
    names = {i: f"{i} · {title}" for i, title in enumerate(titles, 1)}
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="inside.steps"):
        for name, icon, way, by in (
            (_("Previous"), ":material/arrow_back:", "back", -1),
            (_("Next"), ":material/arrow_forward:", "on", 1),
        ):
            st.button(
                name,
                icon=icon,
                key=f"inside_by_{way}",
                on_click=partial(InsideOptions.step.set, shown + by),
                disabled=not 1 <= shown + by <= len(titles),
                width="content",
            )
        InsideOptions.step.draw(
            options=list(names),
            format_func=names.__getitem__,
            required=True,
            label_visibility="collapsed",
            width="content",
        )
    return shown


def _draw(step: Step | Later, sentence: str, key: str) -> None:
    st.markdown(sentence)
    # The page clips formulas at their box, but a numerator can extend above it. An invisible strut makes room.
    sizes = "  \n".join(rf"${symbol} = [{', '.join(map(str, shape))}]$" for symbol, shape in step.shapes.items())
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.latex(rf"\rule{{0pt}}{{1.5em}}{step.formula}")
    right.caption(_("Sizes: {sizes}", sizes=f"  \n{sizes}"))
    step.draw(key)
