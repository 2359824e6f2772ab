"""A longer input for a claim that this one is too short for: what would do, and a button that takes it."""

from dataclasses import replace
from typing import Any

import streamlit as st

import attention_core as ac
from app import compute, presets
from app.input_panel import Chosen
from app.text import _
from attention_core.claims import Outcome
from attention_core.inputs.source import SyntheticSource, TextSource

PRESET = "long"
"""The text that is taken where one is too short."""


def show(outcome: Outcome, chosen: Chosen) -> None:
    """What to do where a claim needs more tokens; nothing where no length would help."""
    needs = outcome.why.needs if outcome.why else None
    if needs is None:
        return
    if isinstance(chosen.source, SyntheticSource):
        _button(_("Check it with n = {n}", n=needs), outcome, {"n": needs})
    elif isinstance(chosen.source, TextSource):
        tokens = _tokens(chosen.source)
        if tokens >= needs:
            # What is pinned on another page is a place in the text that was.
            changes = {"text": presets.texts()[PRESET], "row": None}
            _button(_("Check it on the long preset, {n} tokens", n=tokens), outcome, changes)
        else:
            st.caption(_("Write or paste a text of {n} tokens or more to check it.", n=needs))
    else:
        st.caption(_("Upload a sequence of {n} tokens or more to check it.", n=needs))


def _tokens(source: TextSource) -> int:
    """Tokens of the long preset as the chosen model reads it; none where it cannot."""
    try:
        return compute.record(replace(source, text=presets.texts()[PRESET])).n
    except ac.LabError:
        return 0


def _button(label: str, outcome: Outcome, changes: dict[str, Any]) -> None:
    st.button(
        label,
        icon=":material/straighten:",
        key=f"claims.longer.{outcome.claim.key}",
        on_click=_take,
        args=(outcome.claim.key, changes),
        help=_("It changes the input on the left and opens this claim."),
    )


def _take(key: str, changes: dict[str, Any]) -> None:
    st.session_state.update(changes, claim=key)
