"""The Causal page: which variants can generate text token by token, and at what cost."""

from dataclasses import replace

import streamlit as st

from app.lessons.options import LessonOptions
from app.page import Page
from app.state.controls import choice
from app.ui import input_panel
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_, _
from pages.causal import algorithms, fading, generation, gradient, leaks, state
from pages.causal.algorithms import AlgorithmsOptions
from pages.causal.fading import FadingOptions
from pages.causal.gates import GateOptions
from pages.causal.leaks import LeaksOptions
from pages.causal.measures import MEASURES
from pages.causal.state import StateOptions

CHAPTERS = {
    "state": (
        N_("State"),
        N_("Each token changes one state of fixed size, while a key-value cache grows by its key and its value."),
    ),
    "generation": (
        N_("Generation"),
        N_("What that is worth: how much is held for the next token, and how long it takes to write."),
    ),
    "fading": (
        N_("Fading"),
        N_("What it costs: how much an early token still weighs in what is read from a fixed state later on."),
    ),
    "leak": (N_("Leaks"), N_("Who can write at all: an output that moves with a later token has seen the future.")),
    "algorithms": (
        N_("Three algorithms"),
        N_("To train, nobody has to go token by token: chunks and one cumulative sum give the same answer."),
    ),
    "gradient": (N_("Gradient"), N_("And its gradient keeps no state of every token: two running sums are enough.")),
}
"""Titles and introductions of the views, in reading order."""
VIEWS = {
    "leak": leaks,
    "algorithms": algorithms,
    "state": state,
    "fading": fading,
    "generation": generation,
    "gradient": gradient,
}


def _numbered() -> dict[str, str]:
    return {view: f"{number} · {_(title)}" for number, (view, (title, _line)) in enumerate(CHAPTERS.items(), 1)}


class CausalOptions(LeaksOptions, AlgorithmsOptions, StateOptions, FadingOptions, GateOptions, prefix="c_"):
    """The options that a link to this page carries in addition to the input and the variants."""

    view = choice(_numbered, N_("Chapter"), default="leak", opening="state", layout={"label_visibility": "collapsed"})


def top() -> ChosenInput:
    """Draw the choice of the chapter, and return the input after fitting the tokens of all views to its length."""
    _chapter()
    chosen = input_panel.chosen(switch=False)
    for token in (LeaksOptions.token, FadingOptions.early, StateOptions.last):
        token.restrict_to(range(chosen.qkv.n))
    return chosen


def _chapter() -> None:
    """Draw the choice of the chapter, a button to the next chapter, and the introduction of the chosen chapter."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        view = CausalOptions.view.draw()
        # A lesson has its own “Next” button; a second one would leave the lesson.
        if (after := following(view)) and LessonOptions.lesson.value is None:
            st.button(
                _("Next: {chapter}", chapter=_(CHAPTERS[after][0])),
                icon=":material/arrow_forward:",
                icon_position="right",
                key="causal.next",
                type="tertiary",
                on_click=CausalOptions.view.set,
                args=(after,),
            )
    st.caption(_(CHAPTERS[view][1]))


def following(view: str) -> str:
    """Return the key of the next chapter; empty after the last."""
    order = [*CHAPTERS, ""]
    return order[order.index(view) + 1]


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the chapter on screen; its variants are causal wherever they have a causal form."""
    return replace(VIEWS[CausalOptions.view.value].scope(chosen), causal=True)


PAGE = Page(
    title=N_("Causal"),
    icon=":material/timeline:",
    section="Understand",
    rank=1,
    question=N_("Can it generate, and at what cost?"),
    options=CausalOptions,
    measures=MEASURES,
    has_causal_switch=False,
    top=top,
    view=CausalOptions.view,
    views={name: view.show for name, view in VIEWS.items()},
    scope=scope,
)
