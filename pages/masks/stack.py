"""The editor of the stack of layers on the Masks page: presets, and adding and removing layers.

A button in the title of the stack's panel opens the editor. The number of layers is set on that panel.
"""

from functools import partial

import streamlit as st

import attention_core as ac
from app.state.session import with_chosen_settings
from app.ui import variant_picker
from app.ui.lazy import lazy_popover
from app.words.i18n import _
from app.words.labels import label
from attention_core.analysis.masks.pattern import has_pattern
from attention_core.limits import current
from pages.masks.options import MasksOptions

PRESETS = {
    "local-atrous": (("local", "atrous"), 2),
    "local": (("local",), 6),
    "sparse": (("sparse",), 2),
    "atrous": (("atrous",), 4),
}
"""Preset stacks: the variants of the layers, which are repeated, and the total number of layers."""


PANEL_KEY = "reach"
"""Key of the stack's panel on the board."""


def is_open() -> bool:
    """Return whether the visitor has opened the editor."""
    return PANEL_KEY in st.session_state.get(variant_picker.OPEN_SETTINGS, ())


def show_editor() -> None:
    """Draw the editor in one line: the layers of the stack, and the form that adds layers."""
    with st.container(
        horizontal=True, gap="xsmall", vertical_alignment="center", horizontal_alignment="right", key="stack.chips"
    ):
        help_text = _("These layers repeat until the stack has the number of layers that is set on its panel.")
        st.markdown(f"**{_('Layers of the stack')}**", help=help_text, width="content")
        for index, key in enumerate(MasksOptions.stack.value):
            st.button(
                f"{index + 1} · {label(with_chosen_settings(key))}",
                icon=":material/close:",
                key=f"reach.layer.{index}",
                on_click=partial(_remove_layer, index),
                help=_("Remove this layer"),
            )
        lazy_popover(_("Add a layer"), _add_layer, key="reach.add", icon=":material/add:", type="tertiary")
        if is_open():
            close = partial(variant_picker.toggle_settings, PANEL_KEY)
            st.button(_("Close"), icon=":material/close:", key="reach.close", on_click=close, type="tertiary")


def _show_presets() -> None:
    options = MasksOptions.current()
    names = {
        "local-atrous": _("Local, then atrous"),
        "local": _("Local × 6"),
        "sparse": _("Sparse × 2"),
        "atrous": _("Atrous × 4"),
    }
    st.session_state["reach.preset"] = next(
        (name for name, (stack, depth) in PRESETS.items() if (stack, depth) == (options.stack, options.stack_depth)),
        None,
    )
    st.pills(_("Presets"), list(names), key="reach.preset", format_func=names.__getitem__, on_change=_apply_preset)


def _add_layer() -> None:
    _show_presets()
    if len(MasksOptions.stack.value) >= current().stack_layers:
        st.caption(
            _(
                "A stack has at most {count} layers. Remove a layer before you add another.",
                count=current().stack_layers,
            )
        )
        return
    for variant in ac.all_variants():
        if has_pattern(variant):
            st.button(
                label(with_chosen_settings(variant.key)),
                key=f"reach.add.{variant.key}",
                on_click=partial(_append_layer, variant.key),
                type="tertiary",
            )


def _apply_preset() -> None:
    if preset := st.session_state["reach.preset"]:
        stack, depth = PRESETS[preset]
        MasksOptions.stack.set(stack)
        MasksOptions.stack_depth.set(depth)


def _append_layer(key: str) -> None:
    # Two quick presses of the button before the page is redrawn could exceed the limit.
    MasksOptions.stack.set((*MasksOptions.stack.value, key)[: current().stack_layers])


def _remove_layer(index: int) -> None:
    stack = MasksOptions.stack.value
    MasksOptions.stack.set(stack[:index] + stack[index + 1 :])
