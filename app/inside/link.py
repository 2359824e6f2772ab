"""The way to the Inside page from wherever a variant is shown."""

import streamlit as st

import attention_core as ac
from app import share
from app.inside.stories import discover
from app.text import _


def show(attention: ac.Attention) -> None:
    """A link that takes a variant apart on the same input; nothing for one without an inside worth seeing."""
    if attention.key in discover():
        st.page_link(
            "../pages/inside.py",
            label=_("Take it apart"),
            icon=":material/biotech:",
            query_params=share.link_of(st.session_state, share.shared()) | {"inside": [attention.word]},
        )
