"""The router: page settings, the shared input, the menu, the question at a page's top, and the page itself."""

from contextlib import suppress
from pathlib import Path

import streamlit as st

from app import history, input_panel, navigation, share
from app.page import SECTIONS, Page, discover
from app.text import _
from app.visit import Visit, write_text

FOLDER = Path(__file__).parent


def show() -> None:
    """Run the app once; an address without a path opens the page that stands before all sections."""
    # Streamlit fetches symbols and emoji for the tab from elsewhere: the icon is a file of our own.
    st.set_page_config(
        page_title="Attention Lab", page_icon=str(FOLDER / "icon.svg"), layout="wide", initial_sidebar_state=350
    )
    st.html(FOLDER / "style.css")
    history.keep()
    share.open_link()
    share.use(Visit.fields())

    def body() -> None:
        share.use(page.options.fields())
        if page.uses_input:
            with st.sidebar:
                input_panel.show(hides_special=page.hides_special)
        share.show_notices(notices)
        _header(page)
        with suppress(input_panel.NoInputError):
            page.draw()

    entries = {
        key: st.Page(body, title=_(each.title), icon=each.icon, url_path=key, default=not each.section)
        for key, each in discover().items()
    }
    navigation.keep(entries)
    sections = {
        _(section): [entries[key] for key, each in discover().items() if each.section == section]
        for section in ("", *SECTIONS)
    }
    here = st.navigation(sections, position="top")
    page = next(discover()[key] for key, entry in entries.items() if entry == here)
    notices = st.empty()
    here.run()
    share.close_link()


def _header(page: Page[object]) -> None:
    """The page's question, the causal switch, the page's own controls, and how to share it."""
    share.announce()
    if not page.question:
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"##### {_(page.question)}", width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
            if page.switch:
                Visit.causal.draw(width="content")
            if page.header:
                page.header()
            _share()


def _share() -> None:
    """How to share what is on screen, and what cannot travel in a link."""
    with st.popover(_("Share"), icon=":material/share:", type="tertiary"):
        st.markdown(_("The address bar always holds everything on screen: input, layer, head, variants and knobs."))
        if Visit.input.value == "upload":
            st.info(_("An uploaded file does not travel in a link: whoever opens it must upload the file again."))
        elif Visit.input.value == "text" and not write_text(Visit.text.value):
            st.info(_("This text is too long for a link: the link opens with the default text."))
        address = (st.context.url or "").split("?")[0]  # there is none outside a browser
        st.code(address + share.query_string(share.here()), language=None, wrap_lines=True)
