"""The Home page: an introduction, a live sentence, links to all pages, and the gallery and family tree of variants."""

import streamlit as st

from app.lessons import card
from app.page import SECTIONS, Page, discover
from app.ui import navigation
from app.words.i18n import N_, _
from pages.home import gallery, sentence, tree
from pages.home.options import HomeOptions


def top() -> None:
    """Draw the live sentence, the list of lessons, a description of the app, and links to all pages."""
    st.markdown(f"# {_('Where does a word look? Point at one, drag a slider, type your own sentence.')}", anchors=False)
    sentence.show()
    about = _(
        "**Attention Lab** shows and measures attention mechanisms side by side: softmax, linear, sparse and low-rank "
        "variants on the same queries, keys and values, from your own text through a real trained model. The pages "
        "compute their numbers and pictures from the input you choose, or name the recorded run that they show. The "
        "gallery below draws every variant on one small fixed input."
    )
    parts = f"**{_('Lessons: guess first, then see')}**", card.contents(), about
    st.markdown("\n\n".join(parts), unsafe_allow_html=True)
    _contents()


def _contents() -> None:
    """Draw links to all pages, which keep the input and the variants, and the choice of gallery or family tree."""
    with st.container(key="contents"):
        for column, section in zip(st.columns(len(SECTIONS)), SECTIONS, strict=True):
            with column.container(border=True, height="stretch", gap="xsmall"):
                st.markdown(f"**{_(section)}**")
                for key, page in discover().items():
                    if page.section == section:
                        navigation.link(key, f"**{_(page.title)}** · {_(page.question)}")

    st.header(_("What can be compared"))
    HomeOptions.shown.draw()


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
