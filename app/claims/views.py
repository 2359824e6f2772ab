"""The Claims page: all claims at a glance, or one of them."""

import streamlit as st

from app import share
from app.claims import board, detail, heads
from app.input_panel import Chosen
from attention_core import claims


def fields() -> dict[str, share.Field]:
    """What a link to this page carries beside the input."""
    return {
        "check": share.switch(False),
        "claim": share.one_of("", [claim.key for claim in claims.all_claims()]),
        heads.FIELD: heads.field(),
        "verdict": share.choice("all", *board.FILTERS),
    }


def show(chosen: Chosen) -> None:
    """Draw the claim that a link names or a button opened, else the board."""
    chosen = heads.looked_at(chosen)
    if key := st.session_state["claim"]:
        detail.show(claims.claim(key), chosen)
    else:
        board.show(chosen)
