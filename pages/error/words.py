"""The Error page in words: the sentence that summarises the results, and notes on reading the chart."""

import math
from collections.abc import Mapping, Sequence

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import _, _n, paragraph
from app.words.labels import label, reference_name
from attention_core.experiments.error import SEEDS, UNIFORM, ErrorPoint, best_within
from pages.error.options import Question

SHARE = 0.5
"""Share of softmax's cost up to which variants are compared, so that the saving is noticeable."""


def is_replacement(attention: ac.Attention) -> bool:
    """Return whether a variant is intended to differ from softmax, so that its error has no target of zero."""
    variant = attention.variant
    return variant.approximates is None and variant.reference is None and attention.key != REFERENCE


def in_one_sentence(question: Question, found: Sequence[ErrorPoint], times: Mapping[str, float] | None = None) -> str:
    """Return which variant is best at half of softmax's cost or less, at the greatest length, or that none is.

    Only variants with the same reference are ranked: there is a sentence for each reference.

    Args:
        question: what the visitor compares.
        found: points of the variants.
        times: milliseconds by word if the cost is measured time; None if it is counted in multiply-adds.
    """
    if times is not None and REFERENCE not in times:
        return ""  # Not measured yet.
    n = max((p.n for p in found), default=0)
    here = [p for p in found if p.n == n]
    rivals = [p for _attention, own in question.by_variant(here) for p in own]
    if not rivals and any(a.word != REFERENCE for a in question.attentions):
        return ""  # Not computed yet.
    if not rivals:
        return _("Add a variant, with a knob if you can, to see what it loses against softmax.")
    zeros = {p.reference: p.middle for p in here if p.variant == UNIFORM}
    most = affordable(question, n) if times is None else SHARE * times[REFERENCE]
    references = dict.fromkeys(p.reference for p in sorted(rivals, key=lambda p: p.reference != REFERENCE))
    return paragraph(
        *(
            verdict(
                best_within([p for p in rivals if p.reference == reference], most, times),
                n=n,
                cost=_("multiply-adds") if times is None else _("measured time"),
                zero=zeros.get(reference, math.inf),
                measure=question.axis,
                reference=reference_name(ac.get(reference)),
            )
            for reference in references
        )
    )


def nearest(question: Question, found: Sequence[ErrorPoint]) -> ErrorPoint | None:
    """Return the point closest to softmax at half of its multiply-adds or less; None if no variant is that cheap."""
    rivals = [p for _attention, own in question.by_variant(found) for p in own if p.reference == REFERENCE]
    return best_within(rivals, affordable(question, question.n))


def affordable(question: Question, n: int) -> float:
    """Return the most multiply-adds that a variant may need for n tokens to count as a saving."""
    return SHARE * ac.get(REFERENCE).cost(n, question.d, causal=question.causal).multiply_adds


def verdict(best: ErrorPoint | None, *, n: int, zero: float, measure: str, reference: str, cost: str) -> str:
    """Return the sentence about variants with one reference at half of softmax's cost.

    Args:
        best: point with the smallest error at that cost; None if no variant is that cheap.
        n: number of tokens.
        zero: error of uniform attention, the plain mean of the values.
        measure: name of the error measure.
        reference: name of the reference.
        cost: name of the cost.
    """
    if best is None:
        return _(
            "At n = {n} no variant compared with {reference} needs only half of softmax's {cost}.",
            n=n,
            reference=reference,
            cost=cost,
        )
    fields = {
        "name": label(ac.from_word(best.word)),
        "error": best.middle,
        "zero": zero,
        "n": n,
        "measure": measure,
        "reference": reference,
        "cost": cost,
    }
    if best.middle >= zero:
        return _(
            "At half of softmax's {cost}, **nothing beats the plain mean of the values** beside {reference} at "
            "n = {n}: the best, {name}, has a {measure} of {error:.2g}, the mean {zero:.2g}.",
            **fields,
        )
    return _(
        "At half of softmax's {cost} or less, **{name}** comes closest to {reference} at n = {n}, with a "
        "{measure} of {error:.2g}; the plain mean of the values has {zero:.2g}.",
        **fields,
    )


def captions(question: Question, found: Sequence[ErrorPoint], of_view: Sequence[str], *, above: int) -> list[str]:
    """Return the notes that a reader of this chart needs, one sentence each.

    Args:
        question: what the visitor compares.
        found: points of the variants.
        of_view: notes for this view only.
        above: number of values above the axis.
    """
    sentences = []
    shown = dict(question.by_variant(found))
    if others := [_(a.title) for a in shown if is_replacement(a)]:
        sentences.append(
            _(
                "Open circles and dash-dotted lines replace softmax rather than approximate it ({names}): their "
                "distance is a difference, not a failure.",
                names=", ".join(others),
            )
        )
    for attention in shown:
        if attention.variant.reference is not None:
            sentences.append(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))
    sentences += of_view
    if any(p.low < p.high for p in found):
        sentences.append(
            _(
                "Lines are medians and bands hold the middle half of {heads} heads and, where chance plays a part, of "
                "{seeds} seeds.",
                heads=question.heads,
                seeds=SEEDS,
            )
            if question.heads > 1
            else _("Where chance plays a part, lines are medians and bands hold the middle half of {n} seeds.", n=SEEDS)
        )
    exact = dict.fromkeys(label(ac.from_word(p.word)) for p in found if p.middle == 0 and p.variant != UNIFORM)
    if question.options.log and exact:
        sentences.append(
            _("Not drawn: {names}, with an error of 0, which a logarithmic axis cannot show.", names=", ".join(exact))
        )
    if endless := sum(not math.isfinite(p.middle) for own in shown.values() for p in own):
        sentences.append(
            _n(
                "{n} point is infinite and not drawn: it weighs keys that the reference gives nothing, or has empty "
                "rows.",
                "{n} points are infinite and not drawn: they weigh keys that the reference gives nothing, or have "
                "empty rows.",
                n=endless,
            )
        )
    if above:
        sentences.append(
            _n(
                "{n} point lies above the axis; a double click on the chart shows it.",
                "{n} points lie above the axis; a double click on the chart shows them.",
                n=above,
            )
        )
    return sentences


def definitions() -> str:
    """Return definitions of the terms as Markdown."""
    return _(
        "**Matrix** $\\lVert A - S\\rVert_F / \\lVert S\\rVert_F$. "
        "**Misplaced mass** $\\tfrac12\\sum_j |A_{ij} - S_{ij}|$, mean over rows. "
        "**KL** $\\sum_j A_{ij} \\log (A_{ij}/S_{ij})$, mean over rows, of absolute values made to sum to one. "
        "**Missed keys** share of the 10 heaviest keys in a row of $S$ that are not among the variant's 10. "
        "**Output** $\\lVert AV - SV\\rVert_F / \\lVert SV\\rVert_F$. "
        "**Direction** one minus the mean cosine between rows of $AV$ and $SV$.\n\n"
        "$S$ is softmax on the same queries, keys and values, or the variant's own reference where it has one. The "
        "**mean of v** is uniform attention over the visible keys: whoever errs more might as well not look at them. "
        "The **floors** hold for the matrix error alone: no matrix of rank $m$ is closer to $S$ than its truncated SVD "
        "(Eckart and Young), and none with as many non-zeros in each row than the one that keeps the row's largest "
        "entries. Which applies is read from the matrix, its numerical rank and its zeros, not from a name."
    )
