"""Causal: can it generate, and at what cost?"""

from app import input_panel
from app.controls import choice
from app.input_panel import Chosen
from app.page import Page
from app.text import N_
from pages.causal import algorithms, fading, generation, gradient, leaks, state
from pages.causal.algorithms import AlgorithmsOptions
from pages.causal.fading import FadingOptions
from pages.causal.gates import GateOptions
from pages.causal.leaks import LeaksOptions
from pages.causal.measures import MEASURES
from pages.causal.state import StateOptions


class CausalOptions(LeaksOptions, AlgorithmsOptions, StateOptions, FadingOptions, GateOptions, prefix="c_"):
    """What a link to this page carries beside the input and the variants: which view, and the options of each."""

    view = choice(
        {
            "leak": N_("Leaks"),
            "algorithms": N_("Three algorithms"),
            "state": N_("State"),
            "fading": N_("Fading"),
            "generation": N_("Generation"),
            "gradient": N_("Gradient"),
        },
        N_("View"),
        layout={"label_visibility": "collapsed"},
    )


def top() -> Chosen:
    """Which of the questions is asked; an address holds the tokens of all views, so all are checked."""
    CausalOptions.view.draw()
    chosen = input_panel.chosen(switch=False)
    for token in (LeaksOptions.token, FadingOptions.early, StateOptions.last):
        token.fit(range(chosen.qkv.n))
    return chosen


PAGE = Page(
    title=N_("Causal"),
    icon=":material/timeline:",
    section="Understand",
    rank=1,
    question=N_("Can it generate, and at what cost?"),
    options=CausalOptions,
    measures=MEASURES,
    switch=False,
    top=top,
    view=CausalOptions.view,
    views={
        "leak": leaks.show,
        "algorithms": algorithms.show,
        "state": state.show,
        "fading": fading.show,
        "generation": generation.show,
        "gradient": gradient.show,
    },
)
