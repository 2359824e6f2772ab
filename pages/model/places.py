"""The variants that replace softmax: a button with settings for each, and a form that adds more."""

from contextlib import suppress
from functools import partial

import streamlit as st

import attention_core as ac
from app.ui import variant_picker
from app.ui.lazy import lazy_popover
from app.words.i18n import _
from attention_core import registry
from attention_core.experiments import embedding, swap
from attention_core.limits import current
from attention_core.model_patching import UNIFORM
from attention_core.variant import Value
from pages.model.options import ModelOptions, called, model_title

OPENED = "model.opened"
"""Session state key of the index of the variant whose settings are open."""
ANY = "model.any"
OFFERED = (
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
"""Variants offered as buttons; the last two are content-blind baselines."""


def show(*, causal: bool) -> None:
    """Draw the variants' buttons, the form that adds variants, and the settings that are open.

    Args:
        causal: whether to draw the decoder's variants, which must be causal, instead of the encoder's.
    """
    words = _now(causal)
    opened = st.session_state.get(OPENED)
    with st.container(horizontal=True, gap="xsmall", key="model.chips", vertical_alignment="center"):
        model = model_title(swap.MODEL if causal else embedding.ENCODER)
        st.markdown(_("Replace softmax in **{model}** with:", model=model), width="content")
        for place, word in enumerate(words):
            st.button(
                called(word),
                key=f"model.chip.{place}",
                icon=":material/tune:",
                type="primary" if place == opened else "secondary",
                on_click=_open,
                args=(None if place == opened else place,),
            )
        lazy_popover(_("Add"), partial(_menu, causal), key="model.menu", icon=":material/add:", type="tertiary")
    if opened is not None and opened < len(words):
        _settings(causal, opened, words[opened])


def _open(place: int | None) -> None:
    st.session_state[OPENED] = place


def _settings(causal: bool, place: int, word: str) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="bottom", gap="medium"):
        if word != UNIFORM:
            attention = registry.from_word(word)
            take = partial(_turn, causal, place, attention.key)
            variant_picker.knobs(attention, take, place=f"model.knob.{place}")
        st.button(
            _("Remove"),
            icon=":material/delete:",
            key="model.remove",
            on_click=_remove,
            args=(causal, word),
            type="tertiary",
        )
        st.button(_("Close"), icon=":material/close:", key="model.close", on_click=_open, args=(None,), type="tertiary")


def _turn(causal: bool, place: int, key: str, name: str, value: Value) -> None:
    words = list(_now(causal))
    if place >= len(words) or (attention := registry.from_word(words[place])).key != key:
        return  # The variant was removed before the change arrived.
    turned = variant_picker.with_setting(attention, name, value).word
    if turned not in words:  # A duplicate is not added.
        words[place] = turned
        _take(causal, tuple(words))


def _remove(causal: bool, word: str) -> None:
    _take(causal, tuple(other for other in _now(causal) if other != word))
    ModelOptions.shown.set(0)
    _open(None)


def _menu(causal: bool) -> None:
    words, most = _now(causal), current().swap_variants
    if len(words) >= most:
        st.caption(_("At most {count} variants. Remove one to add another.", count=most))
        return
    with st.container(horizontal=True, gap="xsmall", width=520):
        for word in OFFERED:
            if word not in words:
                st.button(called(word), key=f"model.add.{word}", on_click=_add, args=(causal, word))
    able = [v for v in ac.all_variants() if not (causal and v.causal_reason) and ac.get(v.key).word not in words]
    titles: dict[str | None, str] = {None: _("choose one"), **{v.key: _(v.title) for v in able}}
    st.selectbox(
        _("Other causal variants") if causal else _("Other variants"),
        list(titles),
        format_func=titles.__getitem__,
        key=ANY,
        on_change=_add_any,
        args=(causal,),
    )


def _add_any(causal: bool) -> None:
    with suppress(ac.LabError):  # The browser may send an unknown word.
        if chosen := st.session_state[ANY]:
            _add(causal, ac.get(chosen).word)
    st.session_state[ANY] = None


def _add(causal: bool, word: str) -> None:
    words = _now(causal)
    if word not in words and len(words) < current().swap_variants:
        _take(causal, (*words, word))
        ModelOptions.shown.set(len(words))


def _now(causal: bool) -> tuple[str, ...]:
    return ModelOptions.words.value if causal else ModelOptions.encoders.value


def _take(causal: bool, words: tuple[str, ...]) -> None:
    if causal:
        ModelOptions.words.set(words)
    else:
        ModelOptions.encoders.set(words)
