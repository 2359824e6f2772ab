"""The Masks page: which keys each query can attend to, and how far information travels through several such layers."""

from dataclasses import replace
from typing import Any

import streamlit as st

import attention_core as ac
from app.page import Page
from app.state.session import REFERENCE
from app.ui import input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_
from pages.masks import board, hashed_order, numbers, patterns, reach, stack
from pages.masks.headline import headline
from pages.masks.measures import MEASURES
from pages.masks.options import MasksOptions, show_menus
from pages.masks.reach import StackReach


def top() -> StackReach:
    """Draw the headline, the open settings, the patterns and the reach of the stack on one board."""
    followed = reach.compute_reach(patterns.of(input_panel.chosen()))
    st.container(key="masks.headline").markdown(headline(followed))
    variant_picker.show_settings()
    if followed.found.key_labels is None and (stack.is_open() or followed.whole is None):
        stack.compose()
    board.show(followed)
    MasksOptions.below.draw()
    return followed


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the patterns: one head, or all heads side by side."""
    return replace(input_panel.scope(chosen), aggregation="each")


def opening() -> dict[str, Any]:
    """Return the variants that an empty address opens with: a window, a stride, and a mix with global tokens."""
    return {"variants": tuple(map(ac.get, (REFERENCE, "local", "atrous", "bigbird")))}


PAGE = Page(
    title=N_("Masks"),
    icon=":material/grid_on:",
    section="Explore",
    rank=2,
    question=N_("Which keys can each query reach?"),
    options=MasksOptions,
    opening=opening,
    runs_as_fragment=True,
    measures=MEASURES,
    header=show_menus,
    top=top,
    view=MasksOptions.below,
    scope=scope,
    views={
        "reach": reach.show,
        "numbers": lambda followed: numbers.show(followed.found),
        "order": lambda followed: hashed_order.show(followed.found),
        "download": lambda followed: numbers.take_away(followed.found, followed.stack),
    },
)
