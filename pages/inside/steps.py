"""Draws the Inside page's tabs, one per step of an explanation, and the chosen step.

The steps that explain a variant are called its story.
"""

from collections.abc import Sequence

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.state.session import SharedOptions
from app.ui.input_panel import ChosenInput
from app.words.i18n import _, paragraph
from app.words.labels import spinner
from attention_core.inputs.labels import number_repeats
from pages.inside import downloads
from pages.inside.headline import headline
from pages.inside.options import FIRST_TAB, InsideOptions
from pages.inside.stories import discover
from pages.inside.story import HeadData, LazyStep, Step

LINK_NUMBERS = {
    "efficient": (1, 2, 4),
    "emanet": (1, 5, 6),
    "entmax": (1, 2, 4),
    "funnel": (1, 2, 5),
    "gla": (3, 1, 4),
    "landmark": (1, 2, 4),
    "linear": (4, 1, 2, 3, 5, 6),
    "mla": (2, 1, 3, 4),
    "nsa": (1, 2, 4, 5, 3),
    "nystrom": (2, 1, 3, 5),
    "path": (1, 5, 2, 3, 4),
    "performer": (3, 1, 2, 4, 5),
    "power_bert": (1, 5),
    "pyramid": (1, 2, 5),
    "reformer": (3, 1, 2, 5, 7),
    "relu2": (1, 2, 3, 8),
    "scalar_decay": (3, 1, 4),
    "softmax_gdn": (1, 3, 4, 2),
}
"""The number of each step in links, in the order of the tabs, for variants whose steps were reordered or removed.

A step keeps its number, so that old links still open it. The steps of other variants are numbered in order.
"""


def show(chosen: ChosenInput) -> None:
    """Compute the chosen variant on the chosen input and draw the current step of its story."""
    attention: ac.Attention = InsideOptions.attention.value
    causal = SharedOptions.causal.value
    if causal and attention.variant.causal_reason:
        hidden = chosen.qkv.causal and chosen.qkv.n > 1
        share = cached.future_share(chosen.source, head=chosen.head or 0) if hidden else None
        st.caption(f":material/block: {no_mask_reason(attention, share, chosen.head or 0)}")
        causal = False
    if chosen.head is None:
        st.caption(
            ":material/info: " + _("Showing head 0, because an average over heads cannot be broken down into steps.")
        )
    head = chosen.head or 0
    with spinner(_(attention.title)):
        parts = cached.inside(chosen.source, attention, head, causal)
        data = HeadData(
            attention=attention,
            source=chosen.source,
            qkv=chosen.qkv,
            head=head,
            causal=causal,
            parts=parts.parts,
            weights=parts.weights,
            reference=parts.reference,
            labels=number_repeats(chosen.qkv.names),
        )
        title = st.empty()
        steps = discover()[attention.key](data)
        row = st.container(
            horizontal=True,
            vertical_alignment="center",
            horizontal_alignment="distribute",
            gap="xsmall",
            key="inside.steps",
        )
        with row:
            index = _choose_step([step.title for step in steps], link_numbers(attention.key, len(steps)))
        step = steps[index]
        if isinstance(step, LazyStep):
            title.markdown(headline(data))  # Building the step can take seconds. The summary keeps its place free.
        # The first step has the summary at the top, so that a new visitor reads it before any finding.
        finding = step.headline or (step.findings if index else "")
        title.markdown(f"**{finding.replace('**', '')}**" if finding else headline(data))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="inside.mechanism"):
        _draw_formula(step)
        st.markdown(step.mechanism)
    if measured := step.draw(f"inside.{attention.key}.{index + 1}"):
        title.markdown(f"**{measured}**")
    below = step.findings if finding != step.findings else ""
    st.markdown("  \n".join(filter(None, (below, step.details))))
    downloads.show(data, chosen)


def no_mask_reason(attention: ac.Attention, future_share: float | None, head: int) -> str:
    """Return the sentence that says why a variant is shown without the causal mask.

    Args:
        attention: the variant.
        future_share: the share of softmax's weight on later tokens if the model itself hides them, otherwise None.
        head: the head in which ``future_share`` is measured.
    """
    text = _(
        "{name} cannot be causal: {reason} The page shows {name} without the mask.",
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


def link_numbers(key: str, count: int) -> tuple[int, ...]:
    """Return the number of each step in links, in the order of the tabs.

    Args:
        key: the variant's key.
        count: number of steps. More numbers may be returned, if some steps exist with certain settings only.
    """
    return LINK_NUMBERS.get(key, tuple(range(1, count + 1)))


def _choose_step(titles: Sequence[str], numbers: Sequence[int]) -> int:
    """Draw the tabs of the steps, and return the index of the current step.

    A link to a step that the story does not have opens the step with the number 1.

    Args:
        titles: the titles of the steps.
        numbers: their numbers in links.
    """
    if InsideOptions.step.value not in (FIRST_TAB, *numbers):
        st.caption(":material/info: " + _("This link refers to a step that does not exist. Another step is shown."))
        InsideOptions.step.set(1)
    if InsideOptions.step.value == FIRST_TAB:
        numbers = (FIRST_TAB, *numbers[1:])
    shown = InsideOptions.step.restrict_to(numbers)
    names = {number: f"{i} · {title}" for i, (number, title) in enumerate(zip(numbers, titles, strict=True), 1)}
    InsideOptions.step.draw(
        options=list(names), format_func=names.__getitem__, required=True, label_visibility="collapsed", width="content"
    )
    return numbers.index(shown)


def _draw_formula(step: Step | LazyStep) -> None:
    """Draw the formula of a step. Its symbols have the colours of the panels, and its tooltip has the arrays' sizes."""
    sizes = "  \n".join(rf"${symbol}$: {' × '.join(map(str, shape))}" for symbol, shape in step.shapes.items())
    with st.container(width="content", key="inside.formula"):
        # The page clips a formula at its box, but a fraction can extend above it. The invisible rule makes the box 1.5
        # em high.
        st.latex(rf"\rule{{0pt}}{{1.5em}}{step.formula}", help=_("Sizes of the arrays: {sizes}", sizes=f"  \n{sizes}"))
