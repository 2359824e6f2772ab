"""The Entropy page: whether attention spreads over more keys as the text grows."""

import streamlit as st

from app.page import Page
from app.state.session import SharedOptions
from app.ui import input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_, _
from pages.entropy import distance, drift, factor, growth, normalizer, options
from pages.entropy.options import EntropyOptions, Question
from pages.entropy.view import View

VIEWS: dict[str, View] = {
    "entropy": growth.VIEW,
    "normalizer": normalizer.VIEW,
    "drift": drift.VIEW,
    "distance": distance.VIEW,
    "factor": factor.VIEW,
}


def top() -> Question:
    """Draw the view's meaning, the choice of the view, and its variant picker if it has one; return the question."""
    base = "e" if EntropyOptions.unit.value == "nats" else "2"
    st.caption(_(VIEWS[EntropyOptions.view.value].meaning, base=base))
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        EntropyOptions.view.draw()
        options.show_heads()
    if EntropyOptions.view.value == "entropy":
        variant_picker.show()
        variant_picker.show_left_out()
    return _question(input_panel.chosen())


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the view on screen."""
    return VIEWS[EntropyOptions.view.value].scope(_question(chosen))


def _question(chosen: ChosenInput) -> Question:
    return options.question(chosen, EntropyOptions.now(), causal=SharedOptions.causal.value)


PAGE = Page(
    title=N_("Entropy"),
    icon=":material/trending_up:",
    section="Measure",
    rank=1,
    question=N_("Does attention dilute as text grows?"),
    options=EntropyOptions,
    measures=growth.MEASURES,
    curves=growth.CURVES,
    opening=options.opening,
    header=options.show_display,
    top=top,
    view=EntropyOptions.view,
    views={name: view.show for name, view in VIEWS.items()},
    scope=scope,
)
