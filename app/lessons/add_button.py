"""The button, on every page, that adds the current screen as a step to the lesson that the visitor is making."""

import streamlit as st

import attention_core as ac
from app.lessons import draft
from app.lessons.lesson import MAX_STEPS
from app.lessons.options import write_lesson
from app.ui import navigation
from app.words.i18n import _, _n, escape_markdown, sentence

PAGE = "lessons"
"""The page where a lesson is edited."""


def show(page: str) -> None:
    """Draw the button that adds the current screen to the visitor's own lesson, and a link to that lesson.

    Args:
        page: the page that is shown.
    """
    lesson = draft.current()
    if page == PAGE:
        return
    try:
        screen = draft.current_screen(page)
    except ac.LabError as error:
        st.caption(escape_markdown(sentence(error)))
        return
    is_full = lesson is not None and len(lesson.steps) >= MAX_STEPS
    st.button(
        _("Add this screen to a lesson"),
        icon=":material/add_to_photos:",
        key="lesson.add",
        disabled=is_full,
        on_click=_add,
        args=(screen,),
    )
    if lesson is not None:
        label = _n("Edit your lesson ({n} step)", "Edit your lesson ({n} steps)", n=len(lesson.steps))
        navigation.link(PAGE, label, fields={draft.DRAFT: write_lesson(lesson)} if write_lesson(lesson) else {})


def _add(screen: str) -> None:
    draft.add_step(screen)
    lesson = draft.current()
    if lesson is not None:
        st.toast(_("This screen is now step {n} of your lesson.", n=len(lesson.steps)), icon=":material/check:")
