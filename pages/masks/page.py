"""The Masks page: which keys each query can attend to, and how far information travels through several layers."""

from dataclasses import replace
from typing import Any

import streamlit as st

import attention_core as ac
from app.page import Page
from app.state.session import REFERENCE, SharedOptions
from app.ui import input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.finding import text_above, text_below
from app.words.i18n import N_
from pages.masks import board, hashed_order, numbers, patterns, reach, stack
from pages.masks.headline import findings
from pages.masks.measures import MEASURES
from pages.masks.options import MasksOptions, show_menus
from pages.masks.reach import StackReach


def top() -> StackReach:
    """Draw the findings, the open settings, and the board with the patterns and the reach of the stack."""
    stack_reach = reach.compute_reach(patterns.compute_masks(input_panel.require_input()))
    lines = findings(stack_reach)
    panels = len(stack_reach.masks.sparse) + (stack_reach.reach is not None)
    st.container(key=f"masks.headline.{panels}").markdown(text_above(lines))
    variant_picker.show_settings()
    if stack_reach.masks.key_labels is None and (stack.is_open() or stack_reach.reach is None):
        stack.show_editor()
    board.show(stack_reach)
    if text := text_below(lines):
        st.container(key="masks.reasons").markdown(text)
    has_order = hashed_order.has_hashing() or MasksOptions.below.value == "order"
    MasksOptions.below.draw(options=[view for view in PAGE.views if view != "order" or has_order])
    return stack_reach


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the masks: one head, or all heads, which are not averaged."""
    drawn = {attention.key for attention in SharedOptions.variants.value} | {*MasksOptions.stack.value}
    scope = replace(input_panel.scope(chosen), aggregation="each")
    uses_values = any(ac.variant(key).pattern is not None for key in drawn)
    return scope if uses_values else replace(scope, subtitle=scope.describe_tokens())


def opening() -> dict[str, Any]:
    """Return the options of a visit without query parameters, by name.

    The variants are a window, a stride, and a mix with global tokens.
    """
    return {"variants": tuple(map(ac.get, (REFERENCE, "local", "atrous", "bigbird")))}


PAGE = Page(
    title=N_("Masks"),
    icon=":material/grid_on:",
    section="Explore",
    rank=2,
    question=N_("Which tokens can each token read, in one layer and in several?"),
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
        "numbers": lambda stack_reach: numbers.show(stack_reach.masks),
        "order": lambda stack_reach: hashed_order.show(stack_reach.masks),
        "download": lambda stack_reach: numbers.show_downloads(stack_reach.masks, stack_reach.stack),
    },
)
