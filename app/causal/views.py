"""The page's views, of which one is drawn."""

import streamlit as st

from app import share
from app.causal import algorithms, fading, generation, gradient, leak, state
from app.input_panel import Chosen
from app.text import _

VIEWS = {
    "leak": leak,
    "algorithms": algorithms,
    "state": state,
    "fading": fading,
    "generation": generation,
    "gradient": gradient,
}


def fields() -> dict[str, share.Field]:
    """What a link to this page carries beside the input and the variants."""
    known = {name: field for view in VIEWS.values() for name, field in view.fields().items()}
    return {"c_view": share.choice(*VIEWS)} | known


def pick() -> None:
    """Draw which of the questions is asked."""
    names = {
        "leak": _("Leaks"),
        "algorithms": _("Three algorithms"),
        "state": _("State"),
        "fading": _("Fading"),
        "generation": _("Generation"),
        "gradient": _("Gradient"),
    }
    st.segmented_control(
        _("View"), list(VIEWS), key="c_view", format_func=names.__getitem__, required=True, label_visibility="collapsed"
    )


def show(chosen: Chosen) -> None:
    """Draw the view that was picked; the others' tokens are checked too, as the address holds them."""
    share.fit(**dict.fromkeys(("c_token", "c_early", "c_at"), range(chosen.qkv.n)))
    VIEWS[st.session_state["c_view"]].show(chosen)
