"""The comparison: every chosen variant's matrix on the same queries, keys and values, on one board."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

import attention_core as ac
from app import compute, variant_picker
from app.compute import View
from app.input_panel import Chosen, shown_tokens
from app.matrix_board import BoardEvent, Panel, matrix_board
from app.naming import label
from app.text import _, sentence
from app.visit import REFERENCE, Visit
from attention_core.inputs.labels import number_repeats
from attention_core.looks.compare import Compared
from pages.matrices.options import MatricesOptions
from pages.matrices.words import caption, overall


@dataclass(frozen=True, eq=False)
class Found:
    """All variants of a comparison, computed.

    Attributes:
        chosen: the input.
        matrices: each variant's matrix, in the order shown.
        refused: the variants that could not be computed, with their sentence.
        words: one token per row and column shown.
        labels: the same, repeats numbered.
        difference: whether the difference from each variant's reference is shown, softmax for nearly all.
    """

    chosen: Chosen
    matrices: dict[ac.Attention, Compared]
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


def of(chosen: Chosen) -> Found:
    """Compute every chosen variant; each is a result of its own, so a knob moves only its own."""
    special = Visit.special.value
    view = View(source=chosen.source, head=chosen.head, causal=Visit.causal.value, special=special)
    matrices, refused = {}, {}
    for attention in Visit.variants.value:
        try:
            with st.spinner(_("Computing {name} …", name=attention.title), show_time=True):
                matrices[attention] = compute.matrix(view, attention)
        except ac.errors.NotCausalError as error:
            refused[attention] = sentence(error)
    qkv = chosen.qkv
    words = qkv.tokens if special else shown_tokens(qkv)
    MatricesOptions.row.fit(range(len(words)))
    return Found(chosen, matrices, refused, words, number_repeats(words), MatricesOptions.view.value == "difference")


def show(found: Found) -> None:
    """All matrices on one board; a click pins a query."""
    for reason in found.refused.values():
        st.caption(variant_picker.left_out(reason))
    st.markdown(overall(found.matrices))
    options = MatricesOptions.now()
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
        scale=options.scale,
        transform=options.tone,
        pinned=options.row,
        on_pin=_pin,
        diverging=found.difference,
        unit=found.unit,
    )


def _pin(event: BoardEvent) -> None:
    MatricesOptions.row.set(event.pinned)
