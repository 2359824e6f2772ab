"""Inside: one variant taken apart, step by step, with its real intermediates on the input."""

from dataclasses import replace

import attention_core as ac
from app.page import Page
from app.state.session import Visit
from app.ui import input_panel
from app.ui.input_panel import Chosen
from app.ui.scope import Scope
from app.words.i18n import N_
from pages.inside import steps, variant
from pages.inside.options import InsideOptions


def top() -> Chosen:
    """Which variant is taken apart."""
    variant.choose()
    return input_panel.chosen()


def scope(chosen: Chosen) -> Scope:
    """What the steps show: one head, the first where the average is chosen, under the variant that is taken apart."""
    attention: ac.Attention = InsideOptions.attention.value
    return replace(
        input_panel.scope(chosen),
        head=chosen.head or 0,
        variants=(attention.word,),
        causal=Visit.causal.value and attention.variant.causal_reason is None,
    )


PAGE = Page(
    title=N_("Inside"),
    icon=":material/biotech:",
    section="Understand",
    rank=2,
    question=N_("How does it work?"),
    options=InsideOptions,
    scope=scope,
    top=top,
    views={"steps": steps.show},
)
