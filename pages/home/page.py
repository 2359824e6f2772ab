"""The Home page: an example sentence with attention weights, links to all pages, the lessons, and all variants."""

import html

import streamlit as st

import attention_core as ac
from app.lessons import card, overview
from app.lessons.shipped import all_lessons
from app.page import SECTIONS, Page, discover
from app.ui import navigation
from app.words.i18n import N_, _
from pages.home import gallery, sentence, tree
from pages.home.options import HomeOptions

FIRST_LESSONS = 3
"""Number of lessons that Home shows. The page Lessons lists all of them."""


def top() -> None:
    """Draw the app's name and purpose, the live sentence, links to all pages, and the lessons."""
    purpose = _("Attention Lab: see and measure attention mechanisms side by side")
    instruction = _("Choose a word, drag a slider, or type your own sentence.")
    start = card.step_link(next(iter(all_lessons().values())), 1, _("New here? Start lesson 1") + " →")
    with st.container(gap=None, key="home-top"):
        st.markdown(f"# {purpose}", anchors=False)
        # ``st.markdown`` would draw text with HTML later than the rest, and the page would then move.
        st.html(f'<p class="start">{html.escape(instruction)} {start}</p>')
    sentence.show()
    address = html.escape(navigation.address("lessons"))
    all_link = html.escape(_("All {n} lessons", n=len(all_lessons()))) + " →"
    parts = (
        f"## {_('Pages: one question each')}",
        _page_links(),
        f"## {_('Lessons: guess first, then see the answer')}",
        overview.contents_html(FIRST_LESSONS),
        f'<p class="start"><a class="way" target="_self" href="{address}">{all_link}</a></p>',
    )
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
