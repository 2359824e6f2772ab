"""The button on the Claims page that replaces an input by a longer one if it is too short to judge a claim."""

from collections.abc import Callable
from functools import partial

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.state import presets
from app.state.session import SharedOptions, set_text
from app.ui.input_panel import ChosenInput
from app.words.i18n import _
from attention_core.claims import Outcome
from attention_core.inputs.source import Source, TextSource, UploadSource
from pages.claims.options import open_claim

PRESET = "long"
"""Key of the preset text that replaces a text that is too short."""


def show(outcome: Outcome, chosen: ChosenInput) -> None:
    """Draw a button that takes a longer input, or say how to get one; draw nothing if no length would help."""
    needs = outcome.untestable_reason.needs if outcome.untestable_reason else None
    if needs is None:
        return
    tokens = needs if chosen.source.is_generated else _preset_tokens() if chosen.source.is_text else 0
    if tokens < needs:
        st.caption(instructions(chosen.source, needs))
        return
    set_input = (
        partial(SharedOptions.n.set, needs)
        if chosen.source.is_generated
        else partial(set_text, presets.texts()[PRESET])
    )
    st.button(
        button_label(chosen.source, tokens),
        icon=":material/straighten:",
        key=f"claims.longer.{outcome.key}",
        on_click=_use_longer,
        args=(outcome.key, set_input),
        help=_("Replaces the current input and opens the claim."),
    )


def button_label(source: Source, tokens: int) -> str:
    """Return the label of the button that takes a longer input, with its number of tokens."""
    if source.is_generated:
        return _("Use n = {n}", n=tokens)
    return _("Use the long preset ({n} tokens)", n=tokens)


def instructions(source: Source, needs: int) -> str:
    """Return what the visitor can do if no button can provide a longer input."""
    if source.is_text:
        return _("Write or paste a text of at least {n} tokens.", n=needs)
    if isinstance(source, UploadSource):
        return _("Upload a sequence of at least {n} tokens.", n=needs)
    return _("Choose another input, with at least {n} tokens.", n=needs)


def _preset_tokens() -> int:
    """Return the number of tokens of the long preset in the chosen model; 0 if the model cannot read it."""
    try:
        return cached.record(
            TextSource(presets.texts()[PRESET], SharedOptions.model.value, SharedOptions.layer.value)
        ).n
    except ac.LabError:
        return 0


def _use_longer(key: str, set_input: Callable[[], None]) -> None:
    set_input()
    open_claim(key)
