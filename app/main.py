"""The router: page settings, the shared input, the menu, and the page itself."""

from contextlib import suppress
from pathlib import Path

import streamlit as st

from app import history, input_panel, share
from app.navigation import HERE, entries, page_of

FOLDER = Path(__file__).parent

# Streamlit fetches symbols and emoji for the tab from elsewhere: the icon is a file of our own.
st.set_page_config(
    page_title="Attention Lab", page_icon=str(FOLDER / "icon.svg"), layout="wide", initial_sidebar_state=350
)
st.html(FOLDER / "style.css")
history.keep()
share.open_link()
share.use(share.shared())

pages = {page_of(entry): entry for entry in entries()}
sections = {entry.section: [page for page, e in pages.items() if e.section == entry.section] for entry in entries()}
here = st.navigation(sections, position="top")
st.session_state[HERE] = pages[here]
if pages[here].uses_input:
    with st.sidebar:
        input_panel.show()
share.show_notices(st.empty())
with suppress(input_panel.NoInputError):
    here.run()
share.close_link()
