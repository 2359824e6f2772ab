"""The options of the Error page, their widgets, and the ``Question`` class: a comparison that the options describe."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import streamlit as st

import attention_core as ac
from app.state.controls import Options, choice, selection, switch
from app.state.session import REFERENCE, SharedOptions
from app.ui import variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_popover
from app.words.i18n import N_, _
from attention_core.experiments.error import ErrorPoint
from attention_core.formatting import number
from attention_core.inputs.source import Source

ROUNDING_ERROR = 1e-6
"""Largest relative error that can result from rounding alone: more than ten times the precision of a 32-bit float."""


class ErrorOptions(Options):
    """The options that a link to this page carries in addition to the input and the variants."""

    against = choice(
        {"cost": N_("By cost"), "budget": N_("By setting"), "length": N_("By length")},
        N_("View"),
        default="budget",
        opening="cost",
        layout={"label_visibility": "collapsed"},
    )
    measure = selection(
        {
            "matrix": N_("Matrix error"),
            "mass": N_("Misplaced weight"),
            "kl": N_("KL divergence"),
            "missed": N_("Missed top keys"),
            "output": N_("Output error"),
            "turn": N_("Direction error"),
        },
        N_("Error metric"),
        opening="output",
        link="fidelity",
        layout={"width": 210, "label_visibility": "collapsed"},
    )
    log = switch(False, N_("Log scale"), link="log_error", help=N_("A log scale cannot show an error of 0."))
    price = choice({"count": N_("Multiply-adds"), "ms": N_("Measured time")}, N_("Cost in"))

    @property
    def is_share(self) -> bool:
        """True if errors in the chosen metric are written as percentages."""
        return self.measure not in ("kl", "turn")


@dataclass(frozen=True, kw_only=True)
class Question:
    """The comparison that the visitor chose, for one input.

    Attributes:
        source: source of the input.
        n: number of tokens; the number of keys in cross-attention.
        queries: number of queries in cross-attention; else 0.
        d: head size.
        head: index of the head; None for all heads.
        heads: number of heads that are combined.
        causal: whether the causal mask is on.
        attentions: chosen variants, without those that cannot be causal while causal is on.
        options: options of the page.
    """

    source: Source
    n: int
    queries: int = 0
    d: int
    head: int | None
    heads: int
    causal: bool
    attentions: Sequence[ac.Attention]
    options: ErrorOptions

    @property
    def words(self) -> list[str]:
        """The variants and their changed settings as text, such as ``local~window~16``."""
        return [attention.word for attention in self.attentions]

    @property
    def axis_title(self) -> str:
        """Title of the error axis."""
        return {
            "matrix": _("matrix error"),
            "mass": _("misplaced weight"),
            "kl": _("KL divergence (nats)"),
            "missed": _("missed top keys"),
            "output": _("output error"),
            "turn": _("direction error (1 − cosine)"),
        }[self.options.measure]

    @property
    def rounding_error(self) -> float:
        """Largest error that can result from rounding alone, in the chosen metric."""
        # The KL divergence and the direction error grow with the square of a small error of the weights.
        return ROUNDING_ERROR if self.options.is_share else ROUNDING_ERROR**2

    def format_error(self, error: float, digits: int = 2) -> str:
        """Return an error as text."""
        return f"{number(100 * error, digits)}%" if self.options.is_share else number(error, digits)

    def by_variant(self, points: Sequence[ErrorPoint]) -> Iterator[tuple[ac.Attention, list[ErrorPoint]]]:
        """Yield each variant with its points, except unchanged softmax, which is the reference of the others."""
        for attention in self.attentions:
            group = [p for p in points if p.variant == attention.key]
            if group and attention.word != REFERENCE:
                yield attention, group


def show_options() -> None:
    """Draw the choice of the horizontal axis and of the error metric, and the form with the settings."""

    def draw() -> None:
        if ErrorOptions.against.value == "cost":
            ErrorOptions.price.draw()
        ErrorOptions.log.draw()

    with st.container(horizontal=True, vertical_alignment="bottom", key="controls.error"):
        ErrorOptions.against.draw()
        ErrorOptions.measure.draw()
        lazy_popover(_("Settings"), draw, key="error.display", icon=":material/tune:", type="tertiary")


def current_question(chosen: ChosenInput) -> Question:
    """Return the current comparison."""
    return Question(
        source=chosen.source,
        n=chosen.qkv.m,
        queries=chosen.qkv.n if chosen.qkv.crosses else 0,
        d=chosen.qkv.q.shape[-1],
        head=chosen.head,
        heads=chosen.qkv.heads if chosen.head is None else 1,
        causal=SharedOptions.causal.value,
        attentions=variant_picker.allowed_variants(),
        options=ErrorOptions.current(),
    )
