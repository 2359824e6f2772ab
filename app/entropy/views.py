"""The page's views, of which one is drawn."""

import streamlit as st

from app import variant_picker
from app.entropy import distance, drift, growth, homogeneity, normalizer, options
from app.input_panel import Chosen
from app.text import _

VIEWS = {
    "entropy": growth.show,
    "normalizer": normalizer.show,
    "drift": drift.show,
    "distance": distance.show,
    "factor": homogeneity.show,
}


def pick() -> None:
    """Draw which of the questions is asked, and the variants where it is about them."""
    names = {
        "entropy": _("Entropy H"),
        "normalizer": _("Normaliser Z"),
        "drift": _("Other lengths"),
        "distance": _("Distance and RoPE"),
        "factor": _("Logits × λ"),
    }
    options.pick("h_view", _("View"), names, label_visibility="collapsed")
    if st.session_state["h_view"] == "entropy":
        variant_picker.show()


def show(chosen: Chosen) -> None:
    """Draw the view that was picked."""
    VIEWS[st.session_state["h_view"]](options.asked(chosen))
