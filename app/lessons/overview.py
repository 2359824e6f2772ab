"""The list of the included lessons: pictures, questions, and how many steps the visitor has done."""

import html
from collections.abc import Collection

import streamlit as st

from app.lessons.card import ANSWERS, address, dots_html, step_keys
from app.lessons.lesson import Lesson
from app.lessons.options import LessonOptions
from app.lessons.shipped import all_lessons, lesson_pictures
from app.words.i18n import _, _n, paragraph


def contents_html() -> str:
    """Return the included lessons as links in HTML.

    A link has a picture, the title, the question, how many steps are done, and an action. It opens the
    first step that has no answer yet. The first lesson with such a step is marked as the next one.
    """
    dark, answered, has_next = st.context.theme.type == "dark", st.session_state.get(ANSWERS, {}), False
    has_started = any(step in answered for each in all_lessons().values() for step in step_keys(each))
    links = []
    for number, (key, each) in enumerate(all_lessons().items(), 1):
        done = [step in answered for step in step_keys(each)]
        first_open = 1 if all(done) else done.index(False) + 1
        href = html.escape(address(each, first_open, present=LessonOptions.present.value))
        text = f"<b>{number}. {html.escape(_(each.title))}</b> {html.escape(_(each.question))}"
        kind, has_next = ("" if has_next or all(done) else " next"), has_next or not all(done)
        badge = f"<strong>{html.escape(_('Start here'))}</strong>" if kind and not has_started else ""
        action = _("Repeat") if all(done) else _("Continue") if any(done) else _("Start")
        dots = f"{dots_html(done)} " if any(done) else ""
        links.append(
            f'<a class="way{kind}" target="_self" href="{href}">{badge}{_pictures_html(key, dark=dark)}'
            f"<span>{text}</span> <small>{dots}{html.escape(progress(each, sum(done)))} "
            f"<em>{html.escape(action)} →</em></small></a>"
        )
    return f'<nav class="lessons" aria-label="{html.escape(_("Lessons"))}">{"".join(links)}</nav>'


def summary(lessons: Collection[Lesson]) -> str:
    """Return text about the lessons: their number and duration, that the first explains softmax, and what to do."""
    return paragraph(
        _n(
            "{n} lesson, about {minutes} minutes.",
            "{n} lessons, about {minutes} minutes in total.",
            n=len(lessons),
            minutes=sum(each.minutes for each in lessons),
        ),
        _("The first lesson explains softmax attention."),
        _("In each step, predict a result before you see it."),
    )


def _pictures_html(key: str, *, dark: bool) -> str:
    """Return the pictures of an included lesson in HTML, each with the names of its curves or words below."""
    pictures = []
    for each in lesson_pictures(key, dark=dark):
        names = (
            (f'<i style="background:{colour}"></i>' if colour else "") + html.escape(_(name))
            for name, colour in each.names.items()
        )
        pictures.append(f'<span><img alt="" src="{each.address}">{" ".join(f"<q>{name}</q>" for name in names)}</span>')
    return f'<span class="pictures">{"".join(pictures)}</span>'


def progress(lesson: Lesson, done: int) -> str:
    """Return text that says how many of a lesson's steps are done; before the first answer, the text of ``length``."""
    return _("{done} of {count} steps done", done=done, count=len(lesson.steps)) if done else length(lesson)


def length(lesson: Lesson) -> str:
    """Return the number of steps and the minutes of a lesson, as text."""
    steps = _n("{n} step", "{n} steps", n=len(lesson.steps))
    return steps if not lesson.minutes else f"{steps} · {_('{n} min', n=lesson.minutes)}"
