"""The attention variants that replace softmax on the Model page: a button for each, and a form to add more.

Each button opens the variant's settings.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import streamlit as st

import attention_core as ac
from app.state.controls import Control
from app.ui import variant_picker
from app.ui.lazy import lazy_popover
from app.words.i18n import _
from attention_core import registry
from attention_core.limits import current
from attention_core.model_patching import UNIFORM
from attention_core.variant import Value
from pages.model.options import ModelOptions, display_name, short_name

WordsControl = Control[tuple[str, ...]]
OPENED_KEY = "model.opened"
"""Session state key of the index of the variant whose settings are open."""
ANY_KEY = "model.any"
BUTTON_WORDS = (
    "local~window~64",
    "sink~window~64~sinks~1",
    "sink~window~64",
    "sink",
    "topk~k~8",
    "softmax_log_n",
    "linear",
    "retention",
    UNIFORM,
    "synthesizer~kind~random",
)
"""Variants offered as buttons, as in links (words); the weights of the last two do not depend on the text."""


def show(
    *,
    causal: bool,
    introduction: str,
    control: WordsControl | None = None,
    offered: Sequence[str] = BUTTON_WORDS,
    without_settings: bool = False,
) -> None:
    """Draw the variants' buttons, the form that adds variants, and the settings that are open.

    Args:
        causal: whether to offer only variants that can be causal.
        introduction: the text before the buttons.
        control: the option that stores the variants; None for the decoder's option if ``causal``, else the encoder's.
        offered: words of the variants that can be added by a button.
        without_settings: whether the buttons name settings only to distinguish two entries of one variant.
    """
    control = control or (ModelOptions.words if causal else ModelOptions.encoders)
    words = control.value
    opened = st.session_state.get(OPENED_KEY)
    with st.container(horizontal=True, gap="xsmall", key="model.chips", vertical_alignment="center"):
        st.markdown(introduction, width="content")
        for index, word in enumerate(words):
            st.button(
                short_name(word, words) if without_settings else display_name(word),
                key=f"model.chip.{index}",
                icon=":material/tune:",
                type="primary" if index == opened else "secondary",
                on_click=_open,
                args=(None if index == opened else index,),
            )
        menu = partial(_menu, control, causal, offered)
        lazy_popover(_("Add"), menu, key="model.menu", icon=":material/add:", type="tertiary")
    if opened is not None and opened < len(words):
        _settings(control, opened, words[opened])


def _open(index: int | None) -> None:
    st.session_state[OPENED_KEY] = index


def _settings(control: WordsControl, index: int, word: str) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="bottom", gap="medium"):
        if word != UNIFORM:
            attention = registry.from_word(word)
            on_change = partial(_set_setting, control, index, attention.key)
            variant_picker.draw_knobs(attention, on_change, prefix=f"model.knob.{index}")
        st.button(
            _("Remove"),
            icon=":material/delete:",
            key="model.remove",
            on_click=_remove,
            args=(control, word),
            type="tertiary",
        )
        st.button(_("Close"), icon=":material/close:", key="model.close", on_click=_open, args=(None,), type="tertiary")


def _set_setting(control: WordsControl, index: int, key: str, name: str, value: Value) -> None:
    words = list(control.value)
    if index >= len(words) or (attention := registry.from_word(words[index])).key != key:
        return  # The visitor has removed this variant since its settings were drawn.
    changed = variant_picker.with_setting(attention, name, value).word
    if changed not in words:  # A variant is not listed twice with equal settings.
        words[index] = changed
        control.set(tuple(words))


def _remove(control: WordsControl, word: str) -> None:
    control.set(tuple(other for other in control.value if other != word))
    ModelOptions.shown.set(0)
    _open(None)


def _menu(control: WordsControl, causal: bool, offered: Sequence[str]) -> None:
    words, limit = control.value, current().swap_variants
    if len(words) >= limit:
        st.caption(_("At most {count} variants. Remove one to add another.", count=limit))
        return
    with st.container(horizontal=True, gap="xsmall", width=520):
        for word in offered:
            if word not in words:
                st.button(display_name(word), key=f"model.add.{word}", on_click=_add, args=(control, word))
    allowed = [v for v in ac.all_variants() if not (causal and v.causal_reason) and ac.get(v.key).word not in words]
    titles: dict[str | None, str] = {None: _("Choose one"), **{v.key: _(v.title) for v in allowed}}
    st.selectbox(
        _("Other causal variants") if causal else _("Other variants"),
        list(titles),
        format_func=titles.__getitem__,
        key=ANY_KEY,
        on_change=_add_chosen,
        args=(control,),
    )


def _add_chosen(control: WordsControl) -> None:
    with suppress(ac.LabError):  # An outdated browser message may name an unknown variant.
        if chosen := st.session_state[ANY_KEY]:
            _add(control, ac.get(chosen).word)
    st.session_state[ANY_KEY] = None


def _add(control: WordsControl, word: str) -> None:
    words = control.value
    if word not in words and len(words) < current().swap_variants:
        control.set((*words, word))
        ModelOptions.shown.set(len(words))
