"""Variant menu of the Inside page, and the settings of the chosen variant."""

from functools import partial

import streamlit as st

import attention_core as ac
from app.state.session import SharedOptions, opens_causal
from app.ui.lazy import lazy_popover
from app.ui.variant_picker import knobs, with_setting
from app.words.i18n import _
from app.words.labels import family_title, label
from attention_core.variant import Value
from pages.inside.options import InsideOptions
from pages.inside.stories import discover


def choose() -> None:
    """Draw the menu of variants that have a story, the settings of the current variant, and its summary."""
    attention = InsideOptions.attention.value
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="inside.variants"):
        lazy_popover(_("Another variant"), partial(_menu, attention), key="inside.menu", icon=":material/biotech:")
        if attention.variant.params.settings():
            draw = partial(knobs, attention, _turn, place="inside.knob")
            lazy_popover(label(attention), draw, key="inside.settings", icon=":material/tune:")
        st.markdown(f"**{_(attention.title)}:** {_(attention.variant.summary)}", width="content")


def _menu(attention: ac.Attention) -> None:
    """Draw the variants that have a story, grouped by family."""
    for family in ac.families():
        members = {v.key: _(v.title) for v in ac.all_variants() if v.family == family and v.key in discover()}
        if not members:
            continue
        key = f"inside.menu.{family}"
        st.session_state[key] = attention.key if attention.key in members else None
        st.pills(
            family_title(family),
            list(members),
            key=key,
            format_func=members.__getitem__,
            on_change=partial(_take_variant, key),
            width="content",
        )


def _take_variant(menu: str) -> None:
    key = st.session_state[menu]
    if key is not None:  # A second click on the current variant deselects its pill, and changes nothing.
        InsideOptions.attention.set(ac.get(key))
        InsideOptions.step.set(1)
        if opens_causal(ac.variant(key)):
            SharedOptions.causal.set(True)


def _turn(name: str, value: Value) -> None:
    InsideOptions.attention.set(with_setting(InsideOptions.attention.value, name, value))
