"""Sentences that explain the errors on the Error page's chart, such as why a window is worse than equal weights."""

import math
from collections.abc import Sequence
from itertools import pairwise

import attention_core as ac
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import reference_name, sentence_name
from attention_core.experiments.error import UNIFORM, ErrorPoint
from attention_core.formatting import percent
from pages.error.length_words import outgrown_settings
from pages.error.options import Question
from pages.error.words import error_text, near_equal_weights

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

    Over the length, the other texts name the variants that are exact in short texts.
    """
    inverse = "" if question.options.against == "cost" else inverse_error(question, points)
    if question.options.against == "length":
        return [text for text in (explanation, outgrown_settings(question, points), inverse) if text]
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
    return [sentence for sentence in (explanation, near, inverse, landmarks, windows_text) if sentence]


def narrow_windows(windows: Sequence[ErrorPoint]) -> str:
    """Return which windows have a larger error than equal weights, and the share of the weight that they hide."""
    first = _n(
        "**With window {windows}, Local has a larger error than equal weights.**",
        "**With windows {windows}, Local has a larger error than equal weights.**",
        n=len(windows),
        windows=enumeration(f"{p.value}" for p in windows),
    )
    low, high = (percent(extreme(p.mass for p in windows)) for extreme in (min, max))
    text = _n(
        "The window hides {hidden} of softmax's weight.",
        "The windows hide {hidden} of softmax's weight.",
        n=len(windows),
        hidden=low if low == high else _("{low} to {high}", low=low, high=high),
    )
    return paragraph(first, text)


def inverse_error(question: Question, points: Sequence[ErrorPoint]) -> str:
    """Return the error of Nyström with one landmark per token, which the iterative inverse causes; may be empty.

    On three layers of a text, 6 iterations left an error of 5% to 16% there, and the exact inverse left none.
    """
    complete = [
        p
        for p in points
        if (p.variant, p.value) == ("nystrom", p.n)
        and p.middle > question.rounding_error
        and getattr(ac.from_word(p.word).params, "inverse", "") == "iterative"
    ]
    if question.queries or not complete:
        return ""
    return _(
        "With one landmark per token ({n:,}), Nyström has {error}, because its iterative inverse is approximate. With "
        "the exact inverse, it would equal softmax.",
        n=complete[-1].n,
        error=error_text(question, complete[-1].middle),
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
