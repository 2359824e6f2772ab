"""The Claims page: checks, on the current input, whether statements of articles about attention hold."""

from dataclasses import replace

from app.page import Page
from app.ui import input_panel
from app.ui.input_panel import ChosenInput
from app.words.i18n import N_
from pages.claims import board
from pages.claims.options import ClaimsOptions


def top() -> ChosenInput:
    """Return the input with the chosen head, or with no head to select all heads."""
    chosen = input_panel.chosen(switch=False, uses_unmasked=True)
    return chosen if ClaimsOptions.heads.value == "one" else replace(chosen, head=None)


PAGE = Page(
    title=N_("Claims"),
    icon=":material/fact_check:",
    section="Understand",
    rank=3,
    question=N_("Do published claims about attention hold on your input?"),
    options=ClaimsOptions,
    has_causal_switch=False,
    top=top,
    views={"board": board.show},
)
