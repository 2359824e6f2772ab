"""The Lessons page: the lessons that ship with the lab, a lesson from a file, and the lesson editor."""

import streamlit as st

from app.lessons import card
from app.page import Page
from app.words.i18n import N_, _
from pages.lessons import editor, opening
from pages.lessons.options import LessonsOptions


def top() -> None:
    """Draw the list of the included lessons."""
    st.html(card.contents())


def show(given: None) -> None:
    """Draw the lesson editor, and the upload of a lesson."""
    st.markdown(f"## {_('Make your own lesson')}", anchors=False)
    editor.show()
    opening.show()


PAGE = Page(
    title=N_("Lessons"),
    icon=":material/school:",
    section="Understand",
    rank=9,
    question=N_("Lessons: can you predict the result?"),
    options=LessonsOptions,
    has_causal_switch=False,
    uses_input=False,
    top=top,
    views={"editor": show},
)
