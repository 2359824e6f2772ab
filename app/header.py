"""The top of a page: the question it answers, and the controls that hold for all of it."""

from collections.abc import Callable

import streamlit as st

from app.navigation import HERE
from app.share import announce, show_share
from app.text import _


def header(controls: Callable[[], None] | None = None, *, switch: bool = True) -> None:
    """Draw the page's question, the causal switch, the page's own controls, and how to share it.

    By now a page has asked for what a link carries.

    Args:
        controls: the page's own.
        switch: whether the causal switch is drawn; a page that is about the causal forms has no use for it.
    """
    announce()
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"##### {st.session_state[HERE].question}", width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
            if switch:
                st.toggle(
                    _("Causal"), key="causal", help=_("Hide the future: query i sees keys 0 to i."), width="content"
                )
            if controls:
                controls()
            show_share()
