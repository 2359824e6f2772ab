"""What a link carries of a lesson, on every page: which, at which step, and whether it is shown to a class."""

from dataclasses import replace

import streamlit as st

from app.lessons import lesson
from app.lessons.lesson import MOST_STEPS, Lesson
from app.lessons.shipped import shipped
from app.state import url
from app.state.controls import Options, kept, whole
from app.state.url import Field, only
from app.words.i18n import N_


def read_lesson(given: list[str]) -> Lesson:
    """One that ships by its key, any other as ``lesson.pack`` packed it."""
    word = only(given)
    return shipped()[word] if word in shipped() else lesson.unpack(word)


def write_lesson(found: Lesson | None) -> list[str]:
    """The way back; one too long for an address stays out of it."""
    word = "" if found is None else found.key or lesson.pack(found)
    return [word] if word else []


def is_lesson(found: object) -> bool:
    """Whether it is a lesson, or none."""
    return found is None or isinstance(found, Lesson)


class LessonOptions(Options, shared=2):
    """What the link to any page carries of a lesson; none of it changes what a page computes."""

    lesson = kept(lambda: Field(None, read_lesson, write_lesson, accepts=is_lesson, around=True))
    lesson_step = whole(1, 1, MOST_STEPS, N_("Step"))
    present = kept(
        lambda: replace(url.switch(False), around=True),
        N_("Present"),
        widget=st.toggle,
        help=N_("For a class: larger type, no panel on the left; the arrow keys go through the steps of a lesson."),
    )
