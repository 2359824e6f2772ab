"""The menu of attention variants on the Inside page, and the settings of the chosen variant."""

from functools import partial

import streamlit as st

import attention_core as ac
from app.state.session import SharedOptions, opens_causal
from app.ui.lazy import lazy_popover
from app.ui.variant_picker import draw_knobs, with_setting
from app.words.i18n import _
from app.words.labels import setting_name
from attention_core.variant import Value
from pages.inside.options import InsideOptions, with_visited_settings
from pages.inside.steps import link_numbers
from pages.inside.stories import discover

MENU_KEY = "inside.variant"
"""Session state key of the select box."""
SWITCHED_KEY = "inside.switched_to_causal"
"""Session state key, present while this page has turned the causal mask on for a recurrent variant."""


def show_menu() -> None:
    """Draw the menu of variants that have a story, and the settings of the current variant."""
    attention = InsideOptions.attention.value
    titles = {key: _(ac.variant(key).title) for key in discover()}
    st.session_state[MENU_KEY] = attention.key
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", width="content", key="controls.inside"
    ):
        st.caption(_("Variant"), width="content")
        st.selectbox(
            _("Variant"),
            list(titles),
            key=MENU_KEY,
            format_func=lambda key: titles.get(key, key),
            on_change=_set_variant,
            label_visibility="collapsed",
            width=215,
        )
        if attention.variant.params.settings():
            draw = partial(draw_knobs, attention, _set_setting, prefix="inside.knob")
            lazy_popover(_settings_label(attention), draw, key="inside.settings", icon=":material/tune:")


def question() -> str:
    """Return the page's question about the chosen variant."""
    attention = InsideOptions.attention.value
    name = _(attention.variant.title)
    if attention.key == "mla":  # Its title, "Latent attention", already has the word.
        return _("How does {name} work?", name=name)
    if " " in name:
        return _("How does the {name} variant work?", name=name)
    return _("How does {name} attention work?", name=name)


def _settings_label(attention: ac.Attention) -> str:
    """Return the label of the settings: the main setting, such as ``Landmarks 32``, or "Settings" without one."""
    budget = attention.variant.budget
    if budget is None:
        return _("Settings")
    return f"{setting_name(budget.name).capitalize()} {getattr(attention.params, budget.name)}"


def _set_variant() -> None:
    key = st.session_state[MENU_KEY]
    if key in discover():  # An outdated browser message may name a variant that is not on the menu.
        InsideOptions.attention.set(with_visited_settings(key))
        InsideOptions.step.set(link_numbers(key, 1)[0])
        if not opens_causal(ac.variant(key)):
            if st.session_state.pop(SWITCHED_KEY, False):
                SharedOptions.causal.set(False)
        elif not SharedOptions.causal.value:
            st.session_state[SWITCHED_KEY] = True
            SharedOptions.causal.set(True)


def _set_setting(name: str, value: Value) -> None:
    InsideOptions.attention.set(with_setting(InsideOptions.attention.value, name, value))
