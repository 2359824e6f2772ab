"""The Lessons page: the lessons that come with the app, a lesson from a file, and the lesson editor."""

import streamlit as st

import attention_core as ac
from app.lessons import card, draft, lesson, overview
from app.lessons.lesson import MAX_BYTES
from app.lessons.shipped import all_lessons
from app.page import Page
from app.ui.lazy import lazy_expander
from app.words.i18n import N_, _, escape_markdown, sentence
from pages.lessons import editor
from pages.lessons.options import LessonsOptions


def top() -> None:
    """Draw the list of the included lessons."""
    st.markdown(overview.summary(all_lessons().values()))
    with st.container(key="lessons-list"):
        st.html(overview.contents_html())


def show(_top_result: None) -> None:
    """Draw the lesson editor, and the upload of a lesson."""
    st.markdown(f"## {_('Make your own lesson')}", anchors=False)
    editor.show()
    lazy_expander(_("Open a lesson file"), _open_file, key="lessons.file", width=400)


def _open_file() -> None:
    """Draw the upload and, for a valid lesson, the buttons that begin and edit it; else an error."""
    uploaded = st.file_uploader(
        _("Lesson file"), type=["toml", "txt"], key="lessons.upload", max_upload_size=1, label_visibility="collapsed"
    )
    if uploaded is None:
        return
    try:
        opened_lesson = lesson.read(uploaded.getvalue() if uploaded.size <= MAX_BYTES else b"x" * (MAX_BYTES + 1))
    except ac.LabError as error:
        st.error(escape_markdown(sentence(error)), icon=":material/error:")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escape_markdown(opened_lesson.title)}** · {overview.length(opened_lesson)}", width="content")
        is_begun = st.button(_("Begin"), type="primary", icon=":material/play_arrow:", key="lessons.begin")
        st.button(_("Edit"), icon=":material/edit:", key="lessons.edit", on_click=draft.store, args=(opened_lesson,))
    if is_begun:
        card.start_lesson(opened_lesson)


PAGE = Page(
    title=N_("Lessons"),
    icon=":material/school:",
    section="Understand",
    rank=9,
    question=N_("Can you predict how attention behaves?"),
    options=LessonsOptions,
    has_causal_switch=False,
    uses_input=False,
    top=top,
    views={"editor": show},
)
