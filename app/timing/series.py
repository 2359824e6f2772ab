"""The chosen variants in a run, ready to draw."""

from dataclasses import dataclass

import streamlit as st

import attention_core as ac
from app.variant_picker import label
from attention_core.measure.records import Point, Run
from attention_core.measure.summary import REFERENCE, Ratio, of_variant, ratios


@dataclass(frozen=True, kw_only=True)
class Series:
    """One variant in one run, ready to draw.

    Attributes:
        run: where it was measured.
        word: the variant and its settings there.
        name: on screen.
        colour: the variant's place among those chosen.
        live: whether the run was made here and now.
        points: its measurements, lengths rising.
        ratios: its time over softmax's.
    """

    run: Run
    word: str
    name: str
    colour: int
    live: bool
    points: list[Point]
    ratios: list[Ratio]

    @property
    def is_reference(self) -> bool:
        """Whether this is softmax itself."""
        return self.word.partition("~")[0] == REFERENCE


def series(run: Run, *, live: bool) -> list[Series]:
    """The chosen variants that a run measured; with the settings chosen where it has them, else with its own."""
    found = []
    for place, attention in enumerate(st.session_state["variants"]):
        same = [word for word in run.spec.variants if word.partition("~")[0] == attention.key]
        word = attention.word if attention.word in same else next(iter(same), None)
        if word is not None and (points := of_variant(run, word)):
            found.append(
                Series(
                    run=run, word=word, name=label(ac.from_word(word)), colour=place, live=live, points=points,
                    ratios=ratios(run, word),
                )
            )  # fmt: skip
    return found
