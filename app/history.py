"""One step in the browser's history for each thing a visitor does."""

from pathlib import Path

import streamlit as st

from app.javascript import script

_KEEPER = st.components.v2.component("attention_lab_history", js=script(Path(__file__).with_name("history.js")))


def keep() -> None:
    """Put the keeper on the page, where it takes no room."""
    with st.container(key="history"):
        _KEEPER(key="history.keeper")
