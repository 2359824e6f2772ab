"""Texts that several views of the Error page share, such as the names of the errors, the cost and the baseline."""

import math
from collections.abc import Iterator, Mapping, Sequence

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import N_, _, _n, enumeration
from app.words.labels import every_key, reference_name, sentence_name
from attention_core.experiments.error import UNIFORM, ErrorPoint
from pages.error.options import ROUNDING_ERROR, Question

CHEAP_SHARE = 0.5
"""Share of softmax's cost up to which variants are compared, so that the saving is noticeable."""
NEAR_BASELINE = 0.9
"""Share of the error of equal weights from which an error counts as little better."""
AXIS_END_RATIO = 2
"""Right end of the axis of costs, as a multiple of softmax's cost. Beyond it, names would be far from their lines.

The sentences say “twice”.
"""


def is_replacement(attention: ac.Attention) -> bool:
    """Return whether a variant is intended to differ from softmax, so that its error need not be near zero."""
    variant = attention.variant
    return variant.approximates is None and variant.reference is None and attention.key != REFERENCE


def by_reference(question: Question, points: Sequence[ErrorPoint]) -> Iterator[tuple[str, list[ErrorPoint], float]]:
    """Yield each reference with its variants' points and the error of uniform attention; softmax first.

    The error of uniform attention is NaN until it is computed.
    """
    shown = [p for _attention, group in question.by_variant(points) for p in group]
    for reference in dict.fromkeys(p.reference for p in sorted(shown, key=lambda p: p.reference != REFERENCE)):
        baseline = next((p.middle for p in points if (p.variant, p.reference) == (UNIFORM, reference)), math.nan)
        yield reference, [p for p in shown if p.reference == reference], baseline


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


def add_variant_hint(question: Question) -> str:
    """Return the sentence that asks for a variant if only softmax is chosen; empty if there is another one."""
    if any(attention.word != REFERENCE for attention in question.attentions):
        return ""
    return _("Add a variant to compare it with softmax.")


def equal_weights(question: Question) -> str:
    """Return the name of the baseline, the plain mean of the values of all allowed keys."""
    return _("Equal weights on {keys}", keys=every_key(causal=question.causal))


def cost_name(times: Mapping[str, float] | None) -> str:
    """Return the name of the cost: a count or, with times, a measured time."""
    return _("multiply-adds") if times is None else _("measured time")


def error_text(question: Question, error: float) -> str:
    """Return an error with the name of its metric."""
    texts = {
        "matrix": N_("{error} matrix error"),
        "mass": N_("{error} misplaced weight"),
        "kl": N_("a KL divergence of {error} nats"),
        "missed": N_("{error} of the top 10 keys missing"),
        "output": N_("{error} output error"),
        "turn": N_("a direction error of {error}"),
    }
    return _(texts[question.options.measure], error=question.format_error(error))


def exact_baseline(question: Question, points: Sequence[ErrorPoint], reference: str) -> str:
    """Return the sentence about equal weights without an error, apart from rounding; empty if they have an error.

    Args:
        question: what the visitor compares.
        points: points at one length, with those of uniform attention.
        reference: key of the reference.
    """
    uniform = next((p for p in points if (p.variant, p.reference) == (UNIFORM, reference)), None)
    if uniform is None or not uniform.middle <= question.rounding_error:
        return ""
    name = reference_name(ac.get(reference))
    if uniform.mass <= ROUNDING_ERROR:
        return _("Equal weights already equal {reference} here, so no variant can be closer.", reference=name)
    return _(
        "On this input, even equal weights have no error compared with {reference}. The errors therefore cannot show "
        "which variant is better.",
        reference=name,
    )


def metric_scale(question: Question) -> str:
    """Return what a value of the chosen metric means, such as 100%, for the title of the error axis."""
    texts = {
        "matrix": N_("(100% = error as large as the matrix)"),
        "mass": N_("(100% = all weight on other keys)"),
        "kl": N_("(0 = the same weights)"),
        "missed": N_("(100% = no top key in common)"),
        "output": N_("(100% = error as large as the output)"),
        "turn": N_("(0 = same direction, 1 = right angle)"),
    }
    return _(texts[question.options.measure])


def cost_of_softmax(question: Question, times: Mapping[str, float] | None = None) -> float | None:
    """Return softmax's cost in multiply-adds or, with times, in ms; None if it is not measured."""
    if times is None:
        n, softmax = question.queries or question.n, ac.get(REFERENCE)
        return softmax.cost(n, question.d, causal=question.causal, keys=question.n).multiply_adds
    return times.get(REFERENCE)
