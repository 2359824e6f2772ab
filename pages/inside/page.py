"""The Inside page, which explains one attention variant step by step on a single head of the input."""

from dataclasses import replace

import attention_core as ac
from app.page import Page
from app.state.session import SharedOptions
from app.ui import input_panel
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_, _
from pages.inside import steps, variant
from pages.inside.options import FIRST_HEAD, InsideOptions


def top() -> ChosenInput:
    """Return the chosen input."""
    return input_panel.require_input(cross_reason=_("This page explains attention within one sequence."))


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the steps: the chosen variant on a single head.

    Head 0 is used if the visitor chose the average over heads. The causal mask is off if the variant cannot be causal.
    """
    attention: ac.Attention = InsideOptions.attention.value
    return replace(
        input_panel.scope(chosen),
        head=chosen.head or 0,
        variants=(attention.word,),
        causal=SharedOptions.causal.value and attention.variant.causal_reason is None,
    )


def opening() -> dict[str, int]:
    """Return the options of a visit without query parameters, by name."""
    return {SharedOptions.head.name: FIRST_HEAD}


PAGE = Page(
    title=N_("Inside"),
    icon=":material/biotech:",
    section="Understand",
    rank=2,
    question=N_("How does a variant work?"),
    heading=variant.question,
    options=InsideOptions,
    opening=opening,
    header=variant.show_menu,
    scope=scope,
    top=top,
    views={"steps": steps.show},
)
