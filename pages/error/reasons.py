"""Sentences that explain the errors on the Error page's chart, such as why a window is worse than equal weights."""

import math
from collections.abc import Sequence
from itertools import pairwise

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import reference_name, sentence_name
from attention_core.experiments.error import UNIFORM, ErrorPoint
from attention_core.formatting import percent
from pages.error.length_words import outgrown_settings
from pages.error.options import Question
from pages.error.words import is_replacement

NEAR_BASELINE = 0.9
"""Share of the error of equal weights from which an error counts as little better."""
MIN_NEGATIVE_INCREASE = 0.05
"""Smallest increase of the share of negative weights that explains an increase of the error."""


def cause(question: Question, best: ErrorPoint) -> str:
    """Return the share of weight that the best variant hides or moves, which causes its error.

    Return "" if the share is the chosen metric or if rows do not sum to 1.
    """
    if question.options.measure == "mass" or not ac.from_word(best.word).variant.rows_sum_to_one:
        return ""
    values = {"name": sentence_name(ac.from_word(best.word)), "reference": reference_name(ac.get(best.reference))}
    text = (
        N_("{name} hides the pairs that hold {share} of softmax's weight.")
        if best.variant == "local"
        else N_("Compared with {reference}, {name} moves {share} of a query's weight to other keys.")
    )
    return _(text, share=percent(best.mass), **values)


def reasons(question: Question, points: Sequence[ErrorPoint], explanation: str = "") -> list[str]:
    """Return the explanation of the finding, then why variants have errors and costs like these, without empty texts.

    Over the length, the other texts name the variants that are exact in short texts and those that do not approximate
    softmax.
    """
    replacements = not_approximations(question)
    if question.options.against == "length":
        return [text for text in (explanation, outgrown_settings(question, points), replacements) if text]
    # If the error of equal weights is only a rounding error, no other error is compared with it.
    points = [p for p in points if p.variant != UNIFORM or p.middle > question.rounding_error]
    landmarks, windows_text = "", ""
    uniform_errors = {p.reference: p.middle for p in points if p.variant == UNIFORM}
    for attention, group in question.by_variant(points):
        group = sorted(group, key=lambda p: p.budget)
        if attention.key == "local" and (
            windows := [p for p in group if p.middle > uniform_errors.get(p.reference, math.inf)]
        ):
            windows_text = narrow_windows(windows)
        if attention.key == "nystrom":
            landmarks = more_landmarks(question, group)
    near = near_equal_weights(question, points)
    return [sentence for sentence in (explanation, replacements, landmarks, near, windows_text) if sentence]


def near_equal_weights(question: Question, points: Sequence[ErrorPoint]) -> str:
    """Return which variants approximate softmax hardly better than equal weights do, at their current settings."""
    baseline = next((p.middle for p in points if (p.variant, p.reference) == (UNIFORM, REFERENCE)), math.inf)
    near = {
        sentence_name(attention): p.middle
        for attention, group in question.by_variant(points)
        for p in group
        if (p.word, p.reference) == (attention.word, REFERENCE) and NEAR_BASELINE * baseline <= p.middle < baseline
    }
    if not near:
        return ""
    return _n(
        "{names} is not clearly better than equal weights ({zero}).",
        "{names} are not clearly better than equal weights ({zero}).",
        n=len(near),
        names=enumeration(
            _("{name} ({error})", name=name, error=question.format_error(error)) for name, error in near.items()
        ),
        zero=question.format_error(baseline),
    )


def narrow_windows(windows: Sequence[ErrorPoint]) -> str:
    """Return which windows have a larger error than equal weights, and the share of the weight that they hide."""
    first = _n(
        "**With window {windows}, Local has a larger error than equal weights.**",
        "**With windows {windows}, Local has a larger error than equal weights.**",
        n=len(windows),
        windows=enumeration(f"{p.value}" for p in windows),
    )
    text = _n(
        "The window hides at least {hidden}% of softmax's weight.",
        "Each window hides at least {hidden}% of softmax's weight.",
        n=len(windows),
        hidden=math.floor(100 * min(p.mass for p in windows)),  # rounded down, so that it holds for every window
    )
    return paragraph(first, text)


def not_approximations(question: Question) -> str:
    """Return which of the chosen variants do not approximate softmax; empty if all do."""
    names = [_(attention.title) for attention in question.attentions if is_replacement(attention)]
    if not names:
        return ""
    return _n(
        "{names} is not meant to approximate softmax, so a large error is not a fault.",
        "{names} are not meant to approximate softmax, so a large error is not a fault.",
        n=len(names),
        names=enumeration(names),
    )


def more_landmarks(question: Question, group: Sequence[ErrorPoint]) -> str:
    """Return the sentence about the step at which more landmarks raise the error most; empty without such a step."""
    if not (step := worst_step(question, group)):
        return ""
    fewer, more = step
    return _(
        "**Nyström is worse with {more} landmarks than with {fewer}**: {after:.0f}% of its weight (by absolute value) "
        "is negative, up from {before:.0f}%.",
        fewer=fewer.value,
        more=more.value,
        before=100 * fewer.negative_mass,
        after=100 * more.negative_mass,
    )


def worst_step(question: Question, group: Sequence[ErrorPoint]) -> tuple[ErrorPoint, ErrorPoint] | None:
    """Return the step at which more landmarks raise the error and negative weights most; None if no step does.

    The group has the points of Nyström attention, fewest landmarks first. Nyström's other two factors have no negative
    entries, so negative weights come from large entries of the inverse. On 24 texts and layers, leaving small singular
    values out of the inverse lowered the error at 51 of 52 such steps.
    """
    steps = [
        (fewer, more)
        for fewer, more in pairwise(group)
        if more.middle > max(fewer.middle, question.rounding_error)
        and question.format_error(more.middle) != question.format_error(fewer.middle)
        and more.negative_mass - fewer.negative_mass >= MIN_NEGATIVE_INCREASE
    ]
    return max(steps, key=lambda step: step[1].negative_mass - step[0].negative_mass, default=None)
