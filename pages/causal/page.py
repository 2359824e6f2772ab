"""The Causal page: which attention variants can generate text token by token, and at what cost."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.page import Page
from app.state.controls import choice
from app.ui import input_panel
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_, _
from pages.causal import fading, generation, leaks, overview, state, training
from pages.causal.fading import FadingOptions
from pages.causal.leaks import LeaksOptions
from pages.causal.measures import MEASURES
from pages.causal.state import StateOptions
from pages.causal.training import TrainingOptions

CHAPTERS = {
    "overview": N_("Overview"),
    "state": N_("State"),
    "generation": N_("Generation"),
    "fading": N_("Forgetting"),
    "leak": N_("Future leaks"),
    "algorithms": N_("Training"),
}
"""Titles of the chapters, in reading order."""
QUESTION = N_("Which variants can generate text, and with how much memory?")
QUESTIONS = {
    "overview": QUESTION,
    "state": N_("What does a variant with constant memory store after each token?"),
    "generation": N_("When does constant memory save time?"),
    "fading": N_("How much weight does an earlier token keep?"),
    "leak": N_("Which variants use later tokens?"),
    "algorithms": N_("How much memory does training in chunks save?"),
}
"""Questions that the chapters answer, by the chapter's key."""
VIEWS = {
    "overview": overview,
    "leak": leaks,
    "algorithms": training,
    "state": state,
    "fading": fading,
    "generation": generation,
    "gradient": training,
}
CHAPTER_KEY = "causal.chapter"
"""Session state key of the chapter."""


class CausalOptions(LeaksOptions, TrainingOptions, StateOptions, FadingOptions, prefix="c_"):
    """The options that a link to this page carries in addition to the input and the variants."""

    view = choice({view: N_("Chapter") for view in VIEWS}, N_("Chapter"), default="leak", opening="overview")


def current_chapter() -> str:
    """Return the key of the chapter on screen; gradients are part of the Training chapter."""
    view = CausalOptions.view.value
    return "algorithms" if view == "gradient" else view


def top() -> tuple[ChosenInput, DeltaGenerator]:
    """Draw the choice of the chapter, and return the input and the place of the result above this choice.

    The tokens of all views are restricted to the input's length.
    """
    headline = st.container(key="causal.result")
    _show_chapter_choice()
    chosen = input_panel.require_input(
        switch=False,
        cross_reason=_(
            "A causal mask lets each query attend only to its own and earlier tokens, so "
            "queries and keys must belong to the same tokens."
        ),
    )
    for token in (LeaksOptions.token, FadingOptions.early, StateOptions.last):
        token.restrict_to(range(chosen.qkv.n))
    return chosen, headline


def _show_chapter_choice() -> None:
    st.session_state[CHAPTER_KEY] = current_chapter()
    st.segmented_control(
        _("Chapter"),
        list(CHAPTERS),
        key=CHAPTER_KEY,
        format_func=lambda each: _(CHAPTERS[each]),
        on_change=_set_chapter,
        required=True,
        label_visibility="collapsed",
    )


def _set_chapter() -> None:
    CausalOptions.view.set(st.session_state[CHAPTER_KEY])


def _show_view(view: Any, top_result: tuple[ChosenInput, DeltaGenerator]) -> None:  # noqa: ANN401 - a module
    view.show(*top_result)


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the chapter on screen; its variants are causal wherever they have a causal form."""
    return replace(VIEWS[CausalOptions.view.value].scope(chosen), causal=True)


PAGE = Page(
    title=N_("Causal"),
    icon=":material/timeline:",
    section="Understand",
    rank=1,
    question=QUESTION,
    heading=lambda: _(QUESTIONS[current_chapter()]),
    options=CausalOptions,
    measures=MEASURES,
    has_causal_switch=False,
    top=top,
    view=CausalOptions.view,
    views={name: partial(_show_view, view) for name, view in VIEWS.items()},
    scope=scope,
)
