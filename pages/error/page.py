"""The Error page: each attention variant's approximation error over its cost, its budget, or the sequence length."""

from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.page import Page
from app.state import presets
from app.ui import input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_
from pages.error import budget, cost, length
from pages.error.measures import CURVES, MEASURES
from pages.error.options import ErrorOptions, Question, current_question, show_options


def top() -> tuple[DeltaGenerator, Question]:
    """Draw the options and the variant picker.

    Returns:
        The place of the view's sentence, which is above the controls, and the comparison that the options describe.
    """
    headline = st.container()
    show_options()
    variant_picker.show()
    variant_picker.show_left_out()
    return headline, current_question(input_panel.require_input())


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the numbers on screen: the median of the heads, at one or several lengths."""
    n, by_length = chosen.qkv.m, ErrorOptions.against.value == "length"
    lengths = length.lengths(chosen.source, n) if by_length else (n,)
    return replace(
        input_panel.scope(chosen),
        aggregation="median",
        tokens=lengths[-1],
        shortest=lengths[0],
        variants=tuple(attention.word for attention in variant_picker.allowed_variants()),
    )


def opening() -> dict[str, Any]:
    """Return the options of a first visit: the long preset text, in which cheaper variants save more."""
    return {"text": presets.texts()["long"]}


PAGE = Page(
    title=N_("Error"),
    icon=":material/trending_down:",
    section="Measure",
    rank=2,
    question=N_("How close do cheaper variants come to softmax?"),
    options=ErrorOptions,
    opening=opening,
    measures=MEASURES,
    curves=CURVES,
    top=top,
    view=ErrorOptions.against,
    scope=scope,
    views={"budget": budget.VIEW.show, "length": length.VIEW.show, "cost": cost.show},
)
