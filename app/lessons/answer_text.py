"""The sentences that compare the answer of a lesson's step with the visitor's guess, computed from measured numbers."""

from collections.abc import Callable, Sequence

import attention_core as ac
from app.lessons import answer
from app.lessons.answer import Answer
from app.lessons.lesson import Step
from app.lessons.screen import Screen
from app.measures import verdict
from app.words.i18n import _, end_sentence, enumeration


def answer_lines(step: Step, translate: Callable[[str], str], guess: float | None, screen: Screen) -> list[str]:
    """Return the answer for the step's own screen, and the answer for the visitor's screen if it differs.

    Args:
        step: the step.
        translate: translates the step's text.
        guess: a number, or the index of a choice; None for a visitor who asked for the answer directly.
        screen: the screen that is shown.

    Raises:
        LabError: if the number cannot be computed.
    """
    target, step_screen = answer.find(step), Screen.from_link(step.at, step.reveal)
    names = choices(step, translate)
    chosen = None if guess is None or not names else names[int(guess)]
    if target is None:
        return [choice_verdict(names[step.right - 1], chosen)]
    if target.rank:
        return _ranked_lines(target, step_screen, screen, chosen)
    truth, own_number = target.number(step_screen), target.number(screen)
    if truth is None:
        return [verdict(target.measure, None, guess)]
    shown = target.measure.format(truth, step_screen)
    if names:
        lines = [interval_verdict(names[interval_index(step.bounds, truth)], chosen, shown)]
    else:
        lines = [verdict(target.measure, truth, guess, step_screen)]
    if own_number is not None and (own := target.measure.format(own_number, screen)) != shown:
        lines.append(own_settings_text(own))
    return lines


def _ranked_lines(target: Answer, step_screen: Screen, screen: Screen, chosen: str | None) -> list[str]:
    first, leader = target.winner(step_screen), target.winner(screen)
    if first is None:
        return [_("This screen has no variants to choose from.")]
    lines = [choice_verdict(_(ac.variant(first).title), chosen), numbers_text(target, step_screen)]
    return lines if leader in (None, first) else [*lines, own_settings_text(_(ac.variant(str(leader)).title))]


def choices(step: Step, translate: Callable[[str], str]) -> list[str]:
    """Return the choices of a step in words; empty if the question asks for a number."""
    target = answer.find(step)
    if step.choices:
        return list(map(translate, step.choices))
    if target is not None and target.rank:
        return [_(ac.variant(key).title) for key in target.candidates(Screen.from_link(step.at, step.reveal))]
    return []


def interval_index(bounds: Sequence[float], number: float) -> int:
    """Return the index of the interval between rising bounds that contains a number.

    A number equal to a bound belongs to the interval above the bound.
    """
    return sum(number >= bound for bound in bounds)


def choice_verdict(right: str, chosen: str | None) -> str:
    """Return a sentence on whether a choice is right, or, for ``chosen=None``, a sentence that gives the answer."""
    if chosen is None:
        return _("Answer: {right}.", right=right)
    if chosen == right:
        return _("Correct: {right}.", right=right)
    return _("Not quite. The answer is “{right}”.", right=right)


def interval_verdict(right: str, chosen: str | None, truth: str) -> str:
    """Return a sentence with the measured number and, after a wrong choice, the interval that contains it."""
    if chosen is None:
        return _("Answer: {truth}.", truth=truth)
    if chosen == right:
        return _("Correct. It is {truth}.", truth=truth)
    return _("Not quite. It is {truth}, so “{right}” is right.", truth=truth, right=right)


def numbers_text(target: Answer, screen: Screen) -> str:
    """Return a sentence with the number of every variant among the choices, if the number exists."""
    values = {_(ac.variant(key).title): target.number(screen, key) for key in target.candidates(screen)}
    items = [f"{name} {target.measure.format(value, screen)}" for name, value in values.items() if value is not None]
    return end_sentence(enumeration(items))


def own_settings_text(answer_text: str) -> str:
    """Return the sentence that gives the answer for the visitor's own settings."""
    return _("With your current settings, the answer would be {answer}.", answer=answer_text)
