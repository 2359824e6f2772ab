"""One step in the browser's history for each thing a visitor does."""

from pathlib import Path

import streamlit as st

_KEEPER = st.components.v2.component(
    "attention_lab_history", js=(Path(__file__).parent / "history.js").read_text("utf-8")
)


def keep() -> None:
    """Put the keeper on the page, where it takes no room."""
    with st.container(key="history"):
        _KEEPER(key="history.keeper")
