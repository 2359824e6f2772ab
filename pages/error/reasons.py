"""Sentences that explain the errors on the Error page's chart, such as why a window is worse than equal weights."""

import math
from collections.abc import Sequence
from itertools import pairwise

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import label, reference_name
from attention_core.experiments.error import UNIFORM, ErrorPoint
from attention_core.formatting import percent
from attention_core.ops.pattern.layouts import BLOCK
from pages.error.options import Question

MIN_LARGER_RATIO = 1.1
"""Smallest ratio of the sizes of two outputs at which one is called larger."""
LENGTH_FACTOR = 10
"""Times as many tokens for which the cost of the narrowest window is given too."""
MIN_NEGATIVE_INCREASE = 0.05
"""Smallest increase of the share of negative weights that explains an increase of the error."""


def cause(question: Question, best: ErrorPoint) -> str:
    """Return why the best variant differs from its reference: the hidden or moved weight, where that is a share."""
    values = {"name": label(ac.from_word(best.word)), "reference": reference_name(ac.get(best.reference))}
    if question.options.measure == "mass" or not ac.from_word(best.word).variant.rows_sum_to_one:
        return _("Cheaper variants skip or summarise pairs of tokens, so they differ from {reference}.", **values)
    text = (
        N_("Softmax gives {share:.0f}% of its weight to keys that {name} hides.")
        if best.variant == "local"
        else N_("Compared with {reference}, {name} moves {share:.0f}% of a query's weight to other keys.")
    )
    return _(text, share=100 * best.mass, **values)


def reasons(question: Question, points: Sequence[ErrorPoint], explanation: str = "") -> list[str]:
    """Return why narrow windows are costly and worse than equal weights, and why more landmarks can be worse.

    No reason is given over the length, or if its effect does not occur.

    Args:
        question: what the visitor compares.
        points: points of the variants.
        explanation: explanation of the finding, which follows the cost of the narrowest window.
    """
    sentences = [block_cost(question, points), explanation]
    uniform_errors = {p.reference: p.middle for p in points if p.variant == UNIFORM}
    for attention, group in question.by_variant(points if question.options.against != "length" else ()):
        group = sorted(group, key=lambda p: p.budget)
        if attention.key == "local" and (
            windows := [p for p in group if p.middle > uniform_errors.get(p.reference, math.inf)]
        ):
            sentences.append(narrow_windows(question, windows))
        if attention.key == "nystrom":
            sentences.append(more_landmarks(question, group))
    return [sentence for sentence in sentences if sentence]


def block_cost(question: Question, points: Sequence[ErrorPoint]) -> str:
    """Return what the narrowest window of Local costs, and why; empty if the axis is not the counted cost."""
    softmax = next((p for p in points if p.word == REFERENCE), None)
    window_points = [p for attention, group in question.by_variant(points) if attention.key == "local" for p in group]
    if softmax is None or not window_points or (question.options.against, question.options.price) != ("cost", "count"):
        return ""
    narrowest = min(window_points, key=lambda p: p.budget)
    local, longer = ac.from_word(narrowest.word), LENGTH_FACTOR * narrowest.n
    local_cost, full_cost = (
        a.cost(longer, question.d, causal=question.causal).multiply_adds for a in (local, ac.get(REFERENCE))
    )
    share, later_share = narrowest.multiply_adds / softmax.multiply_adds, local_cost / full_cost
    return paragraph(
        _(
            "**Local needs at least {share} of softmax's multiply-adds**, even with a window of {window}. It processes "
            "queries in blocks of {block} and multiplies every query of a block by all keys in the block's windows.",
            window=narrowest.value,
            share=percent(share),
            block=getattr(local.params, "columns", 0) or BLOCK,
        ),
        _(
            "In longer texts, this share is smaller: {less} at {longer:,} tokens.",
            longer=longer,
            less=percent(later_share),
        )
        if later_share < share
        else "",
    )


def narrow_windows(question: Question, windows: Sequence[ErrorPoint]) -> str:
    """Return why these windows have a larger error than equal weights."""
    # The hidden share ("at least") is rounded down, and the output's size ("up to") is rounded up, so that the text
    # holds for every window.
    output_is_larger = question.options.measure == "output" and min(p.size for p in windows) >= MIN_LARGER_RATIO
    return paragraph(
        _n(
            "**Local with window {windows} has a larger error than equal weights.**",
            "**Local with windows {windows} has a larger error than equal weights.**",
            n=len(windows),
            windows=enumeration(f"{p.value}" for p in windows),
        ),
        _n(
            "The window hides at least {hidden}% of softmax's weight and rescales the remaining weights to sum to "
            "100%.",
            "Each window hides at least {hidden}% of softmax's weight and rescales the remaining weights to sum to "
            "100%.",
            n=len(windows),
            hidden=math.floor(100 * min(p.mass for p in windows)),
        ),
        _(
            "An average of fewer values cancels less, so the output of local attention is up to {size:.1f} times as "
            "large as softmax's output.",
            size=math.ceil(10 * max(p.size for p in windows)) / 10,
        )
        if output_is_larger
        else "",
    )


def more_landmarks(question: Question, group: Sequence[ErrorPoint]) -> str:
    """Return the step at which more landmarks raise the error and negative weights most; empty if no step does.

    Nyström's other two factors have no negative entries, so negative weights come from large entries of the inverse.
    On 24 texts and layers, leaving small singular values out of the inverse lowered the error at 51 of 52 such steps.

    Args:
        question: what the visitor compares.
        group: the points of Nyström attention, fewest landmarks first.
    """
    steps = [
        (fewer, more)
        for fewer, more in pairwise(group)
        if more.middle > fewer.middle
        and question.format_error(more.middle) != question.format_error(fewer.middle)
        and more.negative_mass - fewer.negative_mass >= MIN_NEGATIVE_INCREASE
    ]
    if not steps:
        return ""
    fewer, more = max(steps, key=lambda step: step[1].negative_mass - step[0].negative_mass)
    return _(
        "**Nyström is worse with {more} landmarks than with {fewer}.** It multiplies by an inverse matrix, which can "
        "make weights negative. Negative weights make up {after:.0f}% of the sum of absolute weights with {more} "
        "landmarks, and {before:.0f}% with {fewer}.",
        fewer=fewer.value,
        more=more.value,
        before=100 * fewer.negative_mass,
        after=100 * more.negative_mass,
    )
