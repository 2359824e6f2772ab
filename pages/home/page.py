"""The Home page: an example sentence with attention weights, links to lessons and pages, and all variants."""

import html

import streamlit as st

import attention_core as ac
from app.lessons import card
from app.lessons.shipped import all_lessons
from app.page import SECTIONS, Page, discover
from app.ui import navigation
from app.words.i18n import N_, _
from pages.home import gallery, sentence, tree
from pages.home.options import HomeOptions


def top() -> None:
    """Draw the app's name and purpose, links to the lessons, the live sentence, and links to all pages."""
    purpose = _("Attention Lab: see and measure attention mechanisms side by side")
    instruction = _("Choose a word, drag a slider, or type your own sentence.")
    start = card.step_link(next(iter(all_lessons().values())), 1, _("New here? Start lesson 1") + " →")
    address = html.escape(navigation.address("lessons"))
    name = html.escape(_("All {n} lessons", n=len(all_lessons()))) + " →"
    every = f'<a class="way" target="_self" href="{address}">{name}</a>'
    with st.container(gap=None, key="home-top"):
        st.markdown(f"# {purpose}", anchors=False)
        # ``st.markdown`` would draw text with HTML later than the rest, and the page would then move.
        st.html(f'<p class="start">{html.escape(instruction)} {start} {every}</p>')
    sentence.show()
    parts = (f"## {_('Pages: one question each')}", _page_links())
    st.markdown("\n\n".join(parts), unsafe_allow_html=True, anchors=False)
    heading = _("All variants: {n} in {families} families", n=len(ac.all_variants()), families=len(ac.families()))
    st.markdown(f"## {heading}", anchors=False)
    HomeOptions.shown.draw()


def _page_links() -> str:
    """Return HTML links to all pages, each with the page's question. They keep the input and the variants."""
    columns = []
    for section in SECTIONS:
        links = (
            f'<li><a class="way" target="_self" href="{html.escape(navigation.address(key))}">'
            f"<b>{html.escape(_(page.title))}</b> {html.escape(_(page.question))}</a></li>"
            for key, page in discover().items()
            if page.section == section
        )
        columns.append(f"<div><b>{html.escape(_(section))}</b><ul>{''.join(links)}</ul></div>")
    return f'<nav class="questions" aria-label="{html.escape(_("Pages"))}">{"".join(columns)}</nav>'


PAGE = Page(
    title=N_("Home"),
    icon=":material/home:",
    options=HomeOptions,
    runs_as_fragment=True,
    uses_input=False,
    top=top,
    view=HomeOptions.shown,
    views={"gallery": lambda given: gallery.show(), "tree": lambda given: tree.show()},
)
