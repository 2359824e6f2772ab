"""The options of the Masks page: the view, the token whose reach is shown, and the stack of layers."""

import streamlit as st

import attention_core as ac
from app.state.controls import choice, index, integer, link_only_option
from app.state.link_fields import Field, TruncatedError
from app.state.session import REFERENCE, HashOptions, SharedOptions, with_chosen_settings
from app.ui import variant_picker
from app.words.i18n import N_, _
from attention_core.analysis.masks.pattern import has_pattern
from attention_core.limits import current


def _read_stack(values: list[str]) -> tuple[str, ...]:
    if values == ["none"]:
        return ()
    if not all(has_pattern(ac.variant(key)) for key in values):
        raise ValueError
    if len(values) > (limit := current().stack_layers):
        raise TruncatedError(tuple(values[:limit]))
    return tuple(values)


class MasksOptions(HashOptions):
    """The options that a link to this page carries in addition to the input and the variants."""

    below = choice(
        {
            "reach": N_("Layer by layer"),
            "numbers": N_("Numbers"),
            "order": N_("Hash-based masks"),
            "download": N_("Export"),
        },
        N_("More"),
        link="masks_part",
        layout={"label_visibility": "collapsed"},
    )
    front = index(
        lambda: current().matrix_tokens,
        N_("Token"),
        widget=st.selectbox,
        help=N_("Choose a token here, or click its row in a matrix."),
    )
    stack = link_only_option(
        lambda: Field(
            ("local", "atrous"),
            _read_stack,
            lambda stack: list(stack) or ["none"],
            describe_allowed=lambda: _("up to {n} layers", n=current().stack_layers),
        )
    )
    stack_depth = integer(2, 1, lambda: current().stack_layers, N_("Layers"))
    front_way = choice(
        {"heard": N_("Tokens that can read this token"), "hears": N_("Tokens that this token can read")},
        N_("Direction"),
        opening="hears",
    )
    hash_order = choice({"sorted": N_("Sorted"), "original": N_("Original")}, N_("Order"))


def show_menus() -> None:
    """Draw the menu of variants, and a button that selects every variant with a mask."""
    variant_picker.show_menu(_("Variants"), is_main=has_pattern, others=_("Variants that allow all pairs"))
    st.button(
        _("All masks"),
        icon=":material/library_add:",
        type="tertiary",
        on_click=_select_all,
        help=_("Select all variants that use a mask."),
    )


def _select_all() -> None:
    keys = [v.key for v in ac.all_variants() if v.key == REFERENCE or has_pattern(v)]
    SharedOptions.variants.set(tuple(map(with_chosen_settings, keys[: current().compared_variants])))
