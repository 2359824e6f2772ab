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
OPEN = "lessons.open"
"""The session-state key of the index of the step being edited, from 0."""


def draft() -> Lesson | None:
    """Return the draft, or None before its first step."""
    found = st.session_state.get(DRAFT)
    return found if isinstance(found, Lesson) else None


def keep(found: Lesson | None) -> None:
    """Store the draft. A lesson without steps is deleted, and an included lesson becomes the visitor's own copy."""
    st.session_state[DRAFT] = replace(found, key="") if found and found.steps else None


def screen(page: str) -> str:
    """Return the current screen in the form of ``Step.at``.

    Raises:
        LessonError: if no link can contain the screen.
    """
    if has_upload(discover()[page].input_kind(SharedOptions.current())):
        raise LessonError(
            N_("A screen with an uploaded file cannot be a step, because a lesson does not contain the file.")
        )
    words = url.query_string(
        {name: each for name, each in url.current_query().items() if name not in LESSON_PARAMETERS}
    )
    if len(page + words) > MAX_LENGTHS["at"]:
        raise LessonError(N_("This screen's text is too long for a step. Use a shorter text."))
    return page + words


LESSON_PARAMETERS = ("lesson", "lesson_step", "present", DRAFT, LANGUAGE)
"""Query parameters that do not belong to the screen itself."""


def add(at: str) -> None:
    """Add a screen as the last step.

    Args:
        at: a screen from ``screen``.
    """
    found = draft() or Lesson(title="My lesson")
    if len(found.steps) < MAX_STEPS:
        keep(replace(found, steps=(*found.steps, Step(at=at))))
        st.session_state[OPEN] = len(found.steps)


def set_reveal(at: str, place: int) -> None:
    """Set the screen that shows a step's answer; ``reveal`` becomes its differences from the step's own screen."""
    found = draft()
    if found is None:
        return
    step = found.steps[place]
    before, after = (parse_query(each.partition("?")[2]) for each in (step.at, at))
    changed = {name: words for name, words in after.items() if before.get(name) != words}
    update_step(place, reveal=url.query_string(changed)[1:])


def shows_answer(step: Step) -> bool:
    """Return whether a step's own screen already shows the number it asks for, so that no guess is needed.

    This is so if showing the answer changes nothing, or only adds variants that the question is not about.
    """
    found, curve = answer.find(step), answer.find_curve(step)
    if found is None and curve is None:
        return False
    asked, revealed = Screen.from_link(step.at), Screen.from_link(step.at, step.reveal)
    if any(asked.values[name] != revealed.values[name] for name in asked.values if name != SharedOptions.variants.name):
        return False
    before, after = asked.shared.variants, revealed.shared.variants
    if curve:
        keys = [curve[1]]
    elif found and found.measure.per_variant:
        keys = found.candidates(revealed) if found.rank else [found.key]
    else:
        return before == after
    return all(each in before for each in after if each.key in keys)


def remove_asked_variant(place: int) -> None:
    """Remove the variant that a step asks for from its screen; showing the answer adds it again."""
    found = draft()
    if found is None or not (key := answer.variant_of(found.steps[place])):
        return
    step = found.steps[place]
    words = [each.word for each in Screen.from_link(step.at, step.reveal).shared.variants]
    left = [each.word for each in Screen.from_link(step.at).shared.variants if each.key != key]
    name, at = SharedOptions.variants.name, parse_query(step.at.partition("?")[2])
    update_step(
        place,
        at=step.page + url.query_string({**at, name: left}),
        reveal=url.query_string({**parse_query(step.reveal), name: words})[1:],
    )


def update_step(place: int, **changes: object) -> None:
    """Change attributes of a step."""
    found = draft()
    if found is not None and place < len(found.steps):
        steps = [*found.steps]
        steps[place] = replace(steps[place], **changes)  # type: ignore[arg-type]
        keep(replace(found, steps=tuple(steps)))


def move(place: int, by: int) -> None:
    """Move a step to a later (``by`` > 0) or earlier place; it stays the open step."""
    found, there = draft(), place + by
    if found is not None and 0 <= there < len(found.steps):
        steps = [*found.steps]
        steps.insert(there, steps.pop(place))
        keep(replace(found, steps=tuple(steps)))
        st.session_state[OPEN] = there


def drop(place: int) -> None:
    """Remove a step from the draft."""
    found = draft()
    if found is not None:
        keep(replace(found, steps=tuple(step for i, step in enumerate(found.steps) if i != place)))
        st.session_state[OPEN] = max(0, min(place, len(found.steps) - 2))
