"""The script every page has: steps in history, keys that reach what scrolls, opened forms, links, what draws boards."""

from pathlib import Path

import streamlit as st

from app.form import OPENED
from app.javascript import script

_SCRIPT = st.components.v2.component("attention_lab_page", js=script(Path(__file__).with_name("page.js")))
_KEY = "page_script.mount"


def mount() -> None:
    """Put the script on the page, where it takes no room."""
    _SCRIPT(key=_KEY, on_form_change=_take_form)


def _take_form() -> None:
    st.session_state[OPENED] = (st.session_state[_KEY].form,)
