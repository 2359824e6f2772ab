"""The findings of the view “By cost” of the Error page: the best variant at half of softmax's cost or less."""

import math
from collections.abc import Mapping, Sequence

import attention_core as ac
from app.state.session import REFERENCE
from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, paragraph
from app.words.labels import reference_name, sentence_name
from attention_core.experiments.error import ErrorPoint, best_within_cost
from attention_core.experiments.error_cost import ROUNDS
from attention_core.formatting import percent
from pages.error.options import Question
from pages.error.reasons import cause
from pages.error.words import (
    CHEAP_SHARE,
    NEAR_BASELINE,
    add_variant_hint,
    by_reference,
    cost_name,
    cost_of_softmax,
    error_text,
    exact_baseline,
)

NEXT_BEST = 1.1
"""A variant with a smaller error is mentioned too if its cost is at most this multiple of half of softmax's cost."""


def cost_findings(question: Question, points: Sequence[ErrorPoint], times: Mapping[str, float] | None = None) -> Lines:
    """Return the best variant at half of softmax's cost or less, for each reference on a line of its own.

    Args:
        question: what the visitor compares.
        points: points of the variants.
        times: milliseconds by word if the cost is measured time; None if it is counted in multiply-adds.
    """
    if (full_cost := cost_of_softmax(question, times)) is None:
        text = _("**Press “Measure times”** to time every point of the chart {n} times on this machine.", n=ROUNDS)
        return [[Finding(text)]]
    if hint := add_variant_hint(question):
        return [[Finding(hint)]]
    cost = cost_name(times)
    costs = {p.word: float(p.multiply_adds) for p in points} if times is None else times
    lines = []
    for reference, comparable, baseline in by_reference(question, points):
        if text := exact_baseline(question, points, reference):
            lines.append([Finding(text)])
            continue
        best, next_best = (
            best_within_cost(comparable, share * full_cost, times) for share in (CHEAP_SHARE, NEXT_BEST * CHEAP_SHARE)
        )
        is_cheap = any(costs.get(p.word, math.inf) <= CHEAP_SHARE * full_cost for p in comparable)
        finding = verdict(best, is_cheap=is_cheap, baseline=baseline, question=question, reference=reference, cost=cost)
        cheaper = [p for p in comparable if costs.get(p.word, math.inf) < full_cost and math.isfinite(p.middle)]
        if best is None and cheaper and min(p.middle for p in cheaper) >= baseline:
            text = _(
                "Even below softmax's full cost, no setting shown is closer than equal weights. The best is {name}: "
                "{error}.",
                name=sentence_name(ac.from_word(min(cheaper, key=lambda p: p.middle).word)),
                error=error_text(question, min(p.middle for p in cheaper)),
            )
            finding = Finding(finding.text, text)
        if best is not None:
            explanation = paragraph(
                finding.explanation,
                _(
                    "**{name} has less error ({error})**, but needs slightly more than half of softmax's {cost}."
                    if (share := percent(costs[next_best.word] / full_cost)) == percent(CHEAP_SHARE)
                    else "**{name} has less error ({error})**, but needs slightly more than half of softmax's {cost} "
                    "({share}).",
                    name=sentence_name(ac.from_word(next_best.word)),
                    error=question.format_error(next_best.middle),
                    cost=cost,
                    share=share,
                )
                if next_best and question.format_error(next_best.middle) != question.format_error(best.middle)
                else "",
                cause(question, best),
            )
            finding = Finding(finding.text, explanation)
        lines.append([finding])
    return lines


def best_cheap_point(
    question: Question,
    points: Sequence[ErrorPoint],
    times: Mapping[str, float] | None = None,
    share: float = CHEAP_SHARE,
) -> ErrorPoint | None:
    """Return the point closest to softmax at a share of softmax's cost or less; None if no variant is that cheap.

    Args:
        question: what the visitor compares.
        points: points of the variants.
        times: milliseconds by word if the cost is measured time; None if it is counted in multiply-adds.
        share: largest cost, as a share of softmax's.
    """
    softmax_points = [p for _attention, group in question.by_variant(points) for p in group if p.reference == REFERENCE]
    return best_within_cost(softmax_points, share * (cost_of_softmax(question, times) or 0.0), times)


def verdict(
    best: ErrorPoint | None, *, is_cheap: bool, baseline: float, question: Question, reference: str, cost: str
) -> Finding:
    """Return the finding about variants with one reference at half of softmax's cost.

    Args:
        best: point with the smallest error at that cost; None if no variant with a finite error is that cheap.
        is_cheap: whether a variant is that cheap, with any error.
        baseline: error of uniform attention, the plain mean of the values.
        question: what the visitor compares.
        reference: key of the reference.
        cost: name of the cost.
    """
    condition = (
        _("At half of softmax's cost or less") if cost == cost_name(None) else _("At half of softmax's time or less")
    )
    values = {"reference": reference_name(ac.get(reference)), "cost": cost, "condition": condition}
    if best is None and is_cheap:
        return Finding(_("**{condition}, no setting shown has a finite error.**", **values))
    if best is None:
        return Finding(
            _(
                "**Every variant that is compared with {reference} here needs more than half of softmax's {cost}.**",
                **values,
            )
        )
    values |= {"name": sentence_name(ac.from_word(best.word)), "error": error_text(question, best.middle)}
    if best.middle >= baseline:
        return Finding(
            _("**{condition}, no setting shown is closer to {reference} than equal weights.**", **values),
            _("The best is {name}: {error}.", **values),
        )
    values["zero"] = question.format_error(baseline)
    text = (
        N_("**{condition}, {name} has the smallest error of the settings shown: {error}. Equal weights have {zero}.**")
        if reference == REFERENCE
        else N_(
            "**{condition}, {name} comes closest to {reference} of the settings shown: {error}. Equal weights have "
            "{zero}.**"
        )
    )
    if math.isfinite(baseline) and best.middle >= NEAR_BASELINE * baseline:
        text = N_(
            "**{condition}, {name} comes closest to {reference} of the settings shown: {error}, hardly less than equal "
            "weights ({zero}).**"
        )
    elif not math.isfinite(baseline):
        text = N_("**{condition}, {name} comes closest to {reference} of the settings shown: {error}.**")
    return Finding(_(text, **values))
