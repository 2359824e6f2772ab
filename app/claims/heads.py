"""Which heads claims are checked on: all of the layer, or the one picked on the left."""

from dataclasses import replace

import streamlit as st

from app.input_panel import Chosen
from app.share import Field, choice
from app.text import _

FIELD = "claim_heads"
"""The choice's name in links."""


def field() -> Field:
    """What a link carries: most claims are judged by the middle head or by a share of heads, so all are looked at."""
    return choice("all", "one")


def looked_at(chosen: Chosen) -> Chosen:
    """The chosen input with the head that is looked at; None for all of them."""
    return chosen if st.session_state[FIELD] == "one" else replace(chosen, head=None)


def show(chosen: Chosen) -> None:
    """The choice, where there is one."""
    if chosen.qkv.heads > 1:
        names = {"all": _("all of the layer"), "one": _("the one picked on the left")}
        st.segmented_control(
            _("Heads"),
            list(names),
            key=FIELD,
            format_func=names.__getitem__,
            required=True,
            width="content",
            help=_("With the average picked on the left, these are all of the layer too."),
        )
