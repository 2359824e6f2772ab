"""The Learn page's comparison of models with and without rotary positions, on sequences longer than in training."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.words.i18n import _
from attention_core.experiments.learning import LearnRow
from attention_core.learning.model import Positions
from attention_core.learning.rates import rate
from pages.learn import generalisation_words, shared_runs
from pages.learn.options import LearnOptions
from pages.learn.outcomes import outcomes

OTHER_POSITIONS: dict[Positions, Positions] = {"none": "rotary", "rotary": "none"}
"""For each of the two compared position encodings, the other one."""


def show(rows: Sequence[LearnRow]) -> None:
    """Draw the sentence that compares both position encodings, and a button that switches to the other one."""
    if not (text := generalisation_words.compare_positions(outcomes(rows), outcomes(counterparts(rows)))):
        return
    other = OTHER_POSITIONS[rows[0].spec.model.positions]
    label = _("Show with RoPE") if other == "rotary" else _("Show without positions")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(text, width="content")
        st.button(
            label,
            icon=":material/swap_horiz:",
            type="tertiary",
            key="learn.positions",
            on_click=LearnOptions.positions.set,
            args=(other,),
        )


def counterparts(rows: Sequence[LearnRow]) -> list[LearnRow]:
    """Return the measurements of the same models with the other position encoding, if recorded or cached."""
    known_rows: list[LearnRow] = []
    for spec in dict.fromkeys(each.spec for each in rows if each.spec.model.positions in OTHER_POSITIONS):
        model = replace(spec.model, positions=OTHER_POSITIONS[spec.model.positions])
        known_rows += shared_runs.known_rows(replace(spec, model=model, rate=rate(model)))
    return known_rows
