"""The Claims page: whether statements from articles about attention hold on the current input or for trained models."""

from contextlib import suppress
from dataclasses import replace

from app.page import Page
from app.state.session import SharedOptions
from app.ui import input_panel
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_, _
from attention_core import LabError
from pages.claims import board
from pages.claims.options import ClaimsOptions


def top() -> ChosenInput:
    """Return the input with the chosen head, or with no head to select all heads."""
    chosen = input_panel.require_input(
        switch=False,
        uses_unmasked=True,
        cross_reason=_("The claims apply only if queries and keys belong to the same tokens."),
    )
    return chosen if ClaimsOptions.heads.value == "one" else replace(chosen, head=None)


def header() -> None:
    """Draw the choice between claims about the input and about trained models, and the choice of heads."""
    ClaimsOptions.view.draw(width="content")
    with suppress(LabError):  # ``top`` shows this error.
        chosen = input_panel.read_input(SharedOptions.current())
        if chosen and chosen.qkv.heads > 1 and ClaimsOptions.view.value == "board":
            ClaimsOptions.heads.draw(width="content")


def heading() -> str:
    """Return the question that the shown claims answer."""
    if ClaimsOptions.view.value == "trained":
        return _("Do published claims hold for trained models?")
    return _(QUESTION)


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the board: every head by itself, or the selected head; without input for trained models."""
    head = chosen.head if ClaimsOptions.heads.value == "one" else None
    subtitle = None if ClaimsOptions.view.value == "trained" else ""
    return replace(input_panel.scope(chosen), head=head, aggregation="each", subtitle=subtitle)


QUESTION = N_("Do published claims about attention hold on your input?")
PAGE = Page(
    title=N_("Claims"),
    icon=":material/fact_check:",
    section="Understand",
    rank=3,
    question=QUESTION,
    heading=heading,
    options=ClaimsOptions,
    has_causal_switch=False,
    top=top,
    header=header,
    scope=scope,
    view=ClaimsOptions.view,
    views={"board": board.show, "trained": board.show_trained},
)
