"""Notes on how to read the chart of the Error page, and the definitions of the error metrics."""

import math
from collections.abc import Mapping, Sequence

import attention_core as ac
from app.figures.lines.curves import Curve
from app.ui.about import what_is_counted
from app.words.i18n import _, _n, enumeration
from app.words.labels import every_key, label, readable
from attention_core.experiments.error import SEEDS, UNIFORM, ErrorPoint
from attention_core.formatting import percent
from pages.error.options import Question
from pages.error.words import BEYOND, by_reference, cost_name, is_replacement


def marks(question: Question, found: Sequence[ErrorPoint], drawn: Sequence[Curve]) -> list[str]:
    """Return what large points, hollow points and dash-dotted lines mean, if the chart has them."""
    others = [_(attention.title) for attention, _own in question.by_variant(found) if is_replacement(attention)]
    hollow = [line for line in drawn if line.hollow]
    looks = [_("hollow points")] if any(line.marks for line in hollow) else []
    looks += [_("dash-dotted lines")] if any(len(line.x) > 1 for line in hollow) else []
    return [
        *([_("Large points show the current settings.")] if any(line.large is not None for line in drawn) else []),
        *(
            [
                _(
                    "Variants with {looks} ({names}) replace softmax instead of approximating it. For these variants, "
                    "the chart shows a difference from softmax, not an error.",
                    looks=enumeration(looks),
                    names=enumeration(others),
                )
            ]
            if looks
            else []
        ),
    ]


def above(question: Question, drawn: Sequence[Curve], end: float, right: float | None) -> str:
    """Return which lines continue above the vertical axis, in one sentence; empty if none does.

    Args:
        question: what the visitor compares.
        drawn: the lines.
        end: upper end of the vertical axis.
        right: right end of the horizontal axis; None if it shows all points.
    """
    inside = {
        line.name: [y for x, y in zip(line.x, line.y, strict=True) if right is None or x <= right] for line in drawn
    }
    highest = {name: max((y for y in own if y is not None), default=0.0) for name, own in inside.items()}
    names = [
        _("{name} (up to {error})", name=name, error=question.written(y)) for name, y in highest.items() if y > end
    ]
    if not names:
        return ""
    return _(
        "▲ marks lines that continue above the chart: {names}. Double-click the chart to show them.",
        names=enumeration(names),
    )


def beyond(question: Question, found: Sequence[ErrorPoint], times: Mapping[str, float] | None, whole: float) -> str:
    """Return which settings lie beyond the end of the axis of costs, in two sentences; empty if none does.

    Args:
        question: what the visitor compares.
        found: points of the variants.
        times: milliseconds by word if the cost is measured time; None if it is counted in multiply-adds.
        whole: softmax's cost.
    """
    prices = {p.word: float(p.multiply_adds) for p in found} if times is None else times
    count, names = 0, []
    for attention, own in question.by_variant(found):
        ascending = sorted(own, key=lambda p: float(p.value or 0))
        dear = [p.value for p in ascending if prices.get(p.word, 0.0) > BEYOND * whole]
        count += len(dear)
        knob = attention.variant.budget
        settings = "" if knob is None else f" · {readable(knob.name)} {enumeration(f'{value}' for value in dear)}"
        names += [_(attention.title) + settings] if dear else []
    if not names:
        return ""
    return _n(
        "{names} needs over {limit} of softmax's {cost} and lies beyond the chart. Double-click the chart to show it.",
        "{names} need over {limit} of softmax's {cost} and lie beyond the chart. Double-click the chart to show them.",
        n=count,
        names=enumeration(names),
        limit=percent(BEYOND),
        cost=cost_name(times),
    )


def worse_than_mean(question: Question, found: Sequence[ErrorPoint]) -> list[str]:
    """Return which variants other than Local, which ``reasons`` explains, are worse than uniform attention."""
    names = [
        _(attention.title)
        for _reference, rivals, zero in by_reference(question, found)
        for attention, own in question.by_variant(rivals)
        if attention.key != "local" and any(zero < p.middle for p in own)
    ]
    if not names:
        return []
    return [
        _n(
            "At some points of the chart, {names} has a larger error than equal weights on {keys}.",
            "At some points of the chart, {names} have a larger error than equal weights on {keys}.",
            n=len(names),
            keys=every_key(causal=question.causal),
            names=enumeration(names),
        )
    ]


def notes(question: Question, found: Sequence[ErrorPoint]) -> list[str]:
    """Return the notes on variants and points that a reader of this chart may need, one or two sentences each."""
    sentences = []
    shown = dict(question.by_variant(found))
    for attention in shown:
        if attention.variant.reference is not None:
            sentences.append(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))
    if any(p.low < p.high for p in found):
        sentences.append(
            _(
                "Lines show the median error over {heads} heads, and bands show the middle half of the errors. Random "
                "variants are measured with {seeds} seeds per head.",
                heads=question.heads,
                seeds=SEEDS,
            )
            if question.heads > 1
            else _(
                "For random variants, lines show the median error over {n} seeds, and bands show the middle half of "
                "the errors.",
                n=SEEDS,
            )
        )
    if question.options.against == "cost" and question.options.price == "count":
        sentences.append(what_is_counted())
    exact = dict.fromkeys(label(ac.from_word(p.word)) for p in found if p.middle == 0 and p.variant != UNIFORM)
    if question.options.log and exact:
        sentences.append(
            _("These variants have an error of 0, which a log scale cannot show: {names}.", names=enumeration(exact))
        )
    if endless := sum(not math.isfinite(p.middle) for own in shown.values() for p in own):
        sentences.append(
            _n(
                "{n} point is not drawn because its error is infinite. The variant gives weight to keys to which the "
                "reference gives none, or it has rows without any weight.",
                "{n} points are not drawn because their errors are infinite. The variants give weight to keys to "
                "which the reference gives none, or they have rows without any weight.",
                n=endless,
            )
        )
    return sentences


def reading_guide(question: Question, found: Sequence[ErrorPoint], more: Sequence[str]) -> str:
    """Return the notes, with more notes of a view, and the definitions of the terms, as Markdown."""
    definitions = _(
        "$A$ is the variant's matrix of attention weights, and $V$ is the matrix of values. $S$ is the reference: "
        "softmax's matrix for the same queries and keys, or the variant's own reference if it has one.\n\n"
        "- **Matrix error**: $\\lVert A - S\\rVert_F / \\lVert S\\rVert_F$, where $\\lVert\\cdot\\rVert_F$ is the "
        "root of the sum of squares.\n"
        "- **Misplaced weight**: $\\tfrac12\\sum_j |A_{ij} - S_{ij}|$, averaged over the rows $i$.\n"
        "- **KL divergence**: $\\sum_j A_{ij} \\log (A_{ij}/S_{ij})$, averaged over the rows $i$. First, the "
        "absolute values of each row are divided by their sum.\n"
        "- **Missed top keys**: the share of the 10 heaviest keys in a row of $S$ that are not among the 10 heaviest "
        "keys in the same row of $A$.\n"
        "- **Output error**: $\\lVert AV - SV\\rVert_F / \\lVert SV\\rVert_F$.\n"
        "- **Direction error**: one minus the mean cosine between the same rows of $AV$ and $SV$.\n\n"
        "**Equal weights** on all allowed keys are a baseline. Their output is the mean of these keys' values.\n\n"
        "The **lower bounds** apply to the matrix error only. No matrix of rank $m$ is closer to $S$ than the "
        "truncated SVD of $S$ (Eckart and Young). No matrix with $k$ non-zeros per row is closer to $S$ than the $k$ "
        "largest entries of each row of $S$."
    )
    return "\n\n".join(["\n".join(f"- {note}" for note in (*more, *notes(question, found))), definitions])
