"""The upload of a lesson from a file."""

import streamlit as st

import attention_core as ac
from app.lessons import card, draft, lesson
from app.lessons.lesson import MOST_BYTES
from app.words.i18n import _, escape_markdown, sentence


def show() -> None:
    """Draw the upload and, for a valid lesson, the buttons that begin and edit it; else an error."""
    with st.expander(_("Open a lesson file"), icon=":material/upload_file:", width=400):
        sent = st.file_uploader(
            _("Lesson file"),
            type=["toml", "txt"],
            key="lessons.upload",
            max_upload_size=1,
            label_visibility="collapsed",
        )
    if sent is None:
        return
    try:
        found = lesson.read(sent.getvalue() if sent.size <= MOST_BYTES else b"x" * (MOST_BYTES + 1))
    except ac.LabError as error:
        st.error(escape_markdown(sentence(error)), icon=":material/error:")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escape_markdown(found.title)}** · {card.length(found)}", width="content")
        begun = st.button(_("Begin"), type="primary", icon=":material/play_arrow:", key="lessons.begin")
        st.button(_("Edit it"), icon=":material/edit:", key="lessons.edit", on_click=draft.keep, args=(found,))
    if begun:
        card.begin(found)
