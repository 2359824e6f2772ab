"""The comparison on the Matrices page: the board, its options, and what stands below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

import attention_core as ac
from app import compute, explain, share
from app.compute import Matrix, View
from app.input_panel import Chosen, shown_tokens
from app.matrix_board import BoardEvent, Panel, matrix_board
from app.text import _, literal, sentence
from app.variant_picker import REFERENCE, label
from attention_core.limits import current


@dataclass(frozen=True, eq=False)
class Found:
    """All variants of a comparison, computed.

    Attributes:
        matrices: each variant's matrix, in the order shown.
        refused: the variants that could not be computed, with their sentence.
        words: one token per row and column shown.
        labels: the same, repeats numbered.
        difference: whether the difference from each variant's reference is shown, softmax for nearly all.
    """

    matrices: dict[ac.Attention, Matrix]
    refused: dict[ac.Attention, str]
    words: tuple[str, ...]
    labels: tuple[str, ...]
    difference: bool

    @property
    def unit(self) -> str:
        """What the numbers shown are."""
        return _("difference of weights") if self.difference else _("weight")

    @property
    def shown(self) -> dict[str, np.ndarray]:
        """The matrices on screen by the variant's key."""
        return {a.key: self.values(a) for a in self.drawn}

    @property
    def names(self) -> dict[str, str]:
        """The variants' names on screen by key."""
        return {a.key: label(a) for a in self.drawn}

    @property
    def drawn(self) -> list[ac.Attention]:
        """The variants on the board; softmax's difference from itself is left out beside others."""
        return [a for a in self.matrices if not self.difference or a.word != REFERENCE or len(self.matrices) == 1]

    def values(self, attention: ac.Attention) -> np.ndarray:
        """One variant's matrix as it is shown, ``[n, n]``."""
        found = self.matrices[attention]
        return found.difference if self.difference else found.weights


def fields() -> dict[str, share.Field]:
    """What a link to this page carries beside the input and the variants."""
    keys = [variant.key for variant in ac.all_variants()]
    return {
        "view": share.choice("weights", "difference"),
        "scale": share.choice("shared", "panel"),
        "tone": share.choice("sqrt", "linear", "log"),
        "row": share.whole(None, 0, current().matrix_tokens - 1),
        "more": share.choice("numbers", "explain", "download"),
        "coloured": share.one_of(None, keys),
        "explained": share.one_of(None, keys),
    }


def of(chosen: Chosen) -> Found:
    """Compute every chosen variant; each is a result of its own, so a knob moves only its own."""
    state = st.session_state
    view = View(source=chosen.source, head=chosen.head, causal=state["causal"], special=state["special"])
    matrices, refused = {}, {}
    for attention in state["variants"]:
        try:
            with st.spinner(_("Computing {name} …", name=attention.title), show_time=True):
                matrices[attention] = compute.matrix(view, attention.word)
        except ac.errors.NotCausalError as error:
            refused[attention] = sentence(error)
    qkv = chosen.qkv
    words = qkv.tokens if state["special"] else shown_tokens(qkv)
    share.fit(row=range(len(words)))
    return Found(matrices, refused, words, number_repeats(words), state["view"] == "difference")


def number_repeats(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens that can be told apart: the third ``cat`` is ``cat (3)``."""
    seen: dict[str, int] = {}
    labels = []
    for token in tokens:
        seen[token] = seen.get(token, 0) + 1
        labels.append(f"{token} ({seen[token]})" if seen[token] > 1 else token)
    return tuple(labels)


def show_view_options() -> None:
    """How the matrices are drawn."""
    _options("view", _("Show"), {"weights": _("weights"), "difference": _("difference")}, label_visibility="collapsed")
    with st.popover(_("Display"), icon=":material/tune:", type="tertiary"):
        _options("tone", _("Colour"), {"linear": _("linear"), "sqrt": _("square root"), "log": _("log")})
        _options("scale", _("Scale"), {"shared": _("shared"), "panel": _("per panel")})
        st.toggle(
            _("Special tokens"),
            key="special",
            help=_("Tokens the tokenizer adds. Without them each row is scaled back to its former total."),
        )


def _options(key: str, title: str, names: dict[str, str], **layout: Any) -> None:  # noqa: ANN401 - streamlit's own
    st.segmented_control(
        title, list(names), key=key, format_func=names.__getitem__, required=True, width="content", **layout
    )


def show_board(found: Found) -> None:
    """All matrices on one board; a click pins a query."""
    for reason in found.refused.values():
        st.caption(f":material/block: {literal(reason)} " + _("It is left out while causal is on."))
    st.markdown(explain.overall(found.matrices))
    state = st.session_state
    panels = [
        Panel(
            key=attention.key,
            title=label(attention),
            caption=caption(attention, found.matrices[attention], difference=found.difference),
            values=found.values(attention),
        )
        for attention in found.drawn
    ]
    matrix_board(
        panels,
        row_labels=found.labels,
        col_labels=found.labels,
        key="matrices.board",
        scale=state["scale"],
        transform=state["tone"],
        pinned=state["row"],
        on_pin=_pin,
        diverging=found.difference,
        unit=found.unit,
    )


def _pin(event: BoardEvent) -> None:
    st.session_state["row"] = event.pinned


def caption(attention: ac.Attention, found: Matrix, *, difference: bool) -> str:
    """A panel's line under its title: what is subtracted, how far the matrix is off and from what, its entropy."""
    numbers = found.passport
    entropy = _("entropy {entropy:.2f} nats", entropy=numbers.entropy).replace(" ", "\N{NO-BREAK SPACE}")
    if attention.word == REFERENCE:
        return entropy
    told = {"error": numbers.relative_error, "reference": explain.reference(attention)}
    if difference:
        words = _("minus {reference} · matrix error {error:.2f}", **told)
    elif attention.variant.reference is not None:
        words = _("matrix error {error:.2f} beside {reference}", **told)
    else:
        words = _("matrix error {error:.2f}", **told)
    words += f" · {entropy}"
    if numbers.negative_mass > 0.0005:
        words += " · " + _("{share:.1%} negative", share=numbers.negative_mass)
    return words
