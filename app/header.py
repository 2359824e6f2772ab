"""The top of a page: the question it answers, and the controls that hold for all of it."""

from collections.abc import Callable

import streamlit as st

from app.share import show_share
from app.text import _


def header(question: str, controls: Callable[[], None] | None = None) -> None:
    """Draw the page's question, the causal switch, the page's own controls, and how to share it."""
    left, right = st.columns([11, 9], vertical_alignment="center")
    left.markdown(f"##### {question}")
    with right, st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
        st.toggle(_("Causal"), key="causal", help=_("Hide the future: query i sees keys 0 to i."), width="content")
        if controls:
            controls()
        show_share()
