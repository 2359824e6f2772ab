"""Composing a stack of layers from variants with patterns: presets, adding and taking out, and how deep."""

from functools import partial

import streamlit as st

import attention_core as ac
from app import share
from app.text import _
from app.variant_picker import label
from attention_core.experiments.reach import has_pattern
from attention_core.limits import current

PRESETS = {
    "local-atrous": (("local", "atrous"), 2),
    "local": (("local",), 6),
    "sparse": (("sparse",), 2),
    "atrous": (("atrous",), 4),
}
"""Stacks to start from: one round of layers, and how deep."""


def fields() -> dict[str, share.Field]:
    """What a link carries of the stack."""
    return {
        "stack": share.Field(("local", "atrous"), _read_stack, lambda stack: list(stack) or ["none"]),
        "stack_depth": share.whole(2, 1, current().stack_layers),
    }


def _read_stack(given: list[str]) -> tuple[str, ...]:
    if given == ["none"]:
        return ()
    if len(given) > current().stack_layers or not all(has_pattern(ac.variant(key)) for key in given):
        raise ValueError
    return tuple(given)


def show() -> tuple[list[ac.Attention], int]:
    """Draw the composer.

    Returns:
        One round of the stack, with the chosen variants' settings, the defaults for others; and the layers in all.
    """
    _compose()
    return [_attention(key) for key in st.session_state["stack"]], st.session_state["stack_depth"]


def _attention(key: str) -> ac.Attention:
    chosen = {a.key: a for a in st.session_state["variants"]}
    return chosen.get(key) or ac.get(key)


def _compose() -> None:
    state = st.session_state
    names = {
        "local-atrous": _("Local then atrous"),
        "local": _("Local, over and over"),
        "sparse": _("Sparse twice"),
        "atrous": _("Atrous, over and over"),
    }
    state["reach.preset"] = next(
        (name for name, (stack, depth) in PRESETS.items() if (stack, depth) == (state["stack"], state["stack_depth"])),
        None,
    )
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        st.pills(_("Stack"), list(names), key="reach.preset", format_func=names.__getitem__, on_change=_take_preset)
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
            for place, key in enumerate(state["stack"]):
                st.button(
                    label(_attention(key)),
                    icon=":material/close:",
                    key=f"reach.layer.{place}",
                    on_click=partial(_drop, place),
                    help=_("Take this layer out"),
                )
            _add_layer()
    right.slider(_("Layers"), 1, current().stack_layers, key="stack_depth", help=_("The stack repeats until so deep."))


def _add_layer() -> None:
    with st.popover(_("Add a layer"), icon=":material/add:", type="tertiary"):
        if len(st.session_state["stack"]) >= current().stack_layers:
            st.caption(_("{count} layers are the most; take one out first.", count=current().stack_layers))
            return
        for variant in ac.all_variants():
            if has_pattern(variant):
                st.button(
                    label(_attention(variant.key)),
                    key=f"reach.add.{variant.key}",
                    on_click=partial(_append, variant.key),
                    type="tertiary",
                )


def _take_preset() -> None:
    state = st.session_state
    if state["reach.preset"]:
        state["stack"], state["stack_depth"] = PRESETS[state["reach.preset"]]


def _append(key: str) -> None:
    st.session_state["stack"] = (*st.session_state["stack"], key)


def _drop(place: int) -> None:
    stack = st.session_state["stack"]
    st.session_state["stack"] = stack[:place] + stack[place + 1 :]
