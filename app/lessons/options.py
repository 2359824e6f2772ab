"""The query parameters of a lesson, on every page: the lesson, its step, and whether it is presented to a class."""

from dataclasses import replace

import streamlit as st

from app.lessons import lesson
from app.lessons.lesson import MAX_STEPS, Lesson
from app.lessons.shipped import all_lessons
from app.state import link_fields
from app.state.controls import Options, integer, link_only_option
from app.state.link_fields import Field, single_word
from app.words.i18n import C_, N_


def read_lesson(words: list[str]) -> Lesson:
    """Return the lesson of a link. Its only string is the key of an included lesson, or the result of ``pack``."""
    word = single_word(words)
    return all_lessons()[word] if word in all_lessons() else lesson.unpack(word)


def write_lesson(lesson_: Lesson | None) -> list[str]:
    """Return a list with the lesson's string in a link; empty without a lesson, or if it is too long for a link."""
    word = "" if lesson_ is None else lesson_.key or lesson.pack(lesson_)
    return [word] if word else []


def is_lesson(value: object) -> bool:
    """Return whether a value is a lesson or None."""
    return value is None or isinstance(value, Lesson)


class LessonOptions(Options, shared=2):
    """Options about the current lesson, in the link to every page. They do not change what a page computes."""

    lesson = link_only_option(lambda: Field(None, read_lesson, write_lesson, accepts=is_lesson, presentation_only=True))
    lesson_step = integer(1, 1, MAX_STEPS, N_("Step"))
    present = link_only_option(
        lambda: replace(link_fields.switch(False), presentation_only=True),
        C_("show to a class", "Present"),
        widget=st.toggle,
        help=N_(
            "Shows the lab with larger text and without the sidebar, for use in class. The arrow keys then move "
            "between the steps of a lesson."
        ),
    )
