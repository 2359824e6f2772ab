"""The draft: the lesson that a visitor is making, stored in the session. Every page can add its screen as a step."""

from dataclasses import replace

import streamlit as st

from app.lessons import answer
from app.lessons.lesson import MAX_LENGTHS, MAX_STEPS, Lesson, LessonError, Step, parse_query
from app.lessons.screen import Screen
from app.page import discover
from app.state import url
from app.state.session import SharedOptions
from app.ui.input_forms import has_upload
from app.words.i18n import LANGUAGE, N_

DRAFT = "draft"
"""The draft's name in the session state, and in links to the page where it is edited."""
OPEN_STEP = "lessons.open"
"""The session-state key of the index of the step being edited, from 0."""


def current() -> Lesson | None:
    """Return the draft, or None before its first step."""
    lesson = st.session_state.get(DRAFT)
    return lesson if isinstance(lesson, Lesson) else None


def store(lesson: Lesson | None) -> None:
    """Store the draft. A lesson without steps is deleted, and an included lesson becomes the visitor's own copy."""
    st.session_state[DRAFT] = replace(lesson, key="") if lesson and lesson.steps else None


def current_screen(page: str) -> str:
    """Return the end of the current screen's address, without the lesson's parameters, in the form of ``Step.at``.

    Raises:
        LessonError: if no link can contain the screen.
    """
    if has_upload(discover()[page].input_kind(SharedOptions.current())):
        raise LessonError(
            N_("A screen with an uploaded file cannot be a step, because a lesson does not contain the file.")
        )
    query_string = url.query_string(
        {name: each for name, each in url.current_query().items() if name not in LESSON_PARAMETERS}
    )
    if len(page + query_string) > MAX_LENGTHS["at"]:
        raise LessonError(N_("This screen's text is too long for a step. Use a shorter text."))
    return page + query_string


LESSON_PARAMETERS = ("lesson", "lesson_step", "present", DRAFT, LANGUAGE)
"""Query parameters that do not belong to the screen itself."""


def add_step(screen: str) -> None:
    """Add a screen as the last step.

    Args:
        screen: a screen from ``current_screen``.
    """
    lesson = current() or Lesson(title="My lesson")
    if len(lesson.steps) < MAX_STEPS:
        store(replace(lesson, steps=(*lesson.steps, Step(at=screen))))
        st.session_state[OPEN_STEP] = len(lesson.steps)


def set_reveal(screen: str, index: int) -> None:
    """Make ``screen`` the one that shows a step's answer; ``reveal`` becomes its differences from the step's screen."""
    lesson = current()
    if lesson is None:
        return
    step = lesson.steps[index]
    before, after = (parse_query(each.partition("?")[2]) for each in (step.at, screen))
    changed = {name: words for name, words in after.items() if before.get(name) != words}
    update_step(index, reveal=url.query_string(changed)[1:])


def shows_answer(step: Step) -> bool:
    """Return whether a step's own screen already shows the number it asks for, so that no guess is needed.

    This is so if showing the answer changes nothing, or only adds variants that the question is not about.
    """
    target, curve = answer.find(step), answer.find_curve(step)
    if target is None and curve is None:
        return False
    start, revealed = Screen.from_link(step.at), Screen.from_link(step.at, step.reveal)
    if any(start.values[name] != revealed.values[name] for name in start.values if name != SharedOptions.variants.name):
        return False
    before, after = start.shared.variants, revealed.shared.variants
    if curve:
        keys = [curve[1]]
    elif target and target.measure.per_variant:
        keys = target.candidates(revealed) if target.rank else [target.key]
    else:
        return before == after
    return all(each in before for each in after if each.key in keys)


def remove_asked_variant(index: int) -> None:
    """Remove the variant that a step asks for from the step's own screen; showing the answer adds the variant again."""
    lesson = current()
    if lesson is None or not (key := answer.find_variant(lesson.steps[index])):
        return
    step = lesson.steps[index]
    words = [each.word for each in Screen.from_link(step.at, step.reveal).shared.variants]
    remaining = [each.word for each in Screen.from_link(step.at).shared.variants if each.key != key]
    name, parameters = SharedOptions.variants.name, parse_query(step.at.partition("?")[2])
    update_step(
        index,
        at=step.page + url.query_string({**parameters, name: remaining}),
        reveal=url.query_string({**parse_query(step.reveal), name: words})[1:],
    )


def update_step(index: int, **changes: object) -> None:
    """Change attributes of a step."""
    lesson = current()
    if lesson is not None and index < len(lesson.steps):
        steps = [*lesson.steps]
        steps[index] = replace(steps[index], **changes)  # type: ignore[arg-type]
        store(replace(lesson, steps=tuple(steps)))


def move_step(index: int, offset: int) -> None:
    """Move a step to a later (``offset`` > 0) or earlier place; it stays the open step."""
    lesson, new_index = current(), index + offset
    if lesson is not None and 0 <= new_index < len(lesson.steps):
        steps = [*lesson.steps]
        steps.insert(new_index, steps.pop(index))
        store(replace(lesson, steps=tuple(steps)))
        st.session_state[OPEN_STEP] = new_index


def remove_step(index: int) -> None:
    """Remove a step from the draft."""
    lesson = current()
    if lesson is not None:
        store(replace(lesson, steps=tuple(step for i, step in enumerate(lesson.steps) if i != index)))
        st.session_state[OPEN_STEP] = max(0, min(index, len(lesson.steps) - 2))
