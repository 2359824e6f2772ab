"""What the visitor asks of the Matrices page."""

from typing import Literal

import streamlit as st

import attention_core as ac
from app import share
from app.controls import Control, Options, choice, kept, place
from app.text import N_, _
from app.visit import PINNED, Visit
from attention_core.limits import current


def _one_variant() -> share.Field:
    return share.one_of(None, [variant.key for variant in ac.all_variants()])


class MatricesOptions(Options):
    """What a link to this page carries beside the input and the variants."""

    view = choice(
        {"weights": N_("weights"), "difference": N_("difference")}, N_("Show"), layout={"label_visibility": "collapsed"}
    )
    scale: Control[Literal["shared", "panel"]] = choice({"shared": N_("shared"), "panel": N_("per panel")}, N_("Scale"))
    tone: Control[Literal["linear", "sqrt", "log"]] = choice(
        {"linear": N_("linear"), "sqrt": N_("square root"), "log": N_("log")}, N_("Colour"), default="sqrt"
    )
    row = place(lambda: current().matrix_tokens, N_("Pinned query"), link=PINNED, widget=st.selectbox)
    coloured = kept(_one_variant, N_("Colour the text by"))
    below = choice(
        {"numbers": N_("Numbers"), "explain": N_("Formula and code"), "download": N_("Take away")},
        N_("More"),
        link="more",
        layout={"label_visibility": "collapsed"},
    )
    explained = kept(_one_variant, N_("Variant"))


def show_display() -> None:
    """How the matrices are drawn."""
    MatricesOptions.view.draw()
    with st.popover(_("Display"), icon=":material/tune:", type="tertiary"):
        MatricesOptions.tone.draw()
        MatricesOptions.scale.draw()
        Visit.special.draw()
