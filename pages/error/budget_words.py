"""The findings of the view “By setting” of the Error page, above all the cheapest setting with a small error."""

import math
from collections.abc import Sequence

import attention_core as ac
from app.state.session import REFERENCE
from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import reference_name, sentence_name
from attention_core.experiments.error import ErrorPoint
from attention_core.formatting import percent
from pages.error.options import Question
from pages.error.words import CHEAP_SHARE, add_variant_hint, by_reference, cost_of_softmax, error_text, exact_baseline

CLOSE_ERROR_SHARE = 0.5
"""Share of the error of equal weights up to which an error counts as small. The sentences say “half”."""


def cheap_and_close(points: Sequence[ErrorPoint], baseline: float, full_cost: float) -> list[ErrorPoint]:
    """Return the points that cost less than softmax and have at most half the error of equal weights.

    A setting that costs as much as softmax is usually softmax itself, such as a window over the whole text.
    """
    return [p for p in points if p.middle <= CLOSE_ERROR_SHARE * baseline and p.multiply_adds < full_cost]


def named_point(points: Sequence[ErrorPoint], baseline: float, full_cost: float) -> ErrorPoint | None:
    """Return the point that the finding names; None if no point costs less than softmax.

    It is the cheapest point that at least halves the error of equal weights. If no point does, it is the point with the
    smallest error among those that cost less than softmax.
    """
    if math.isfinite(baseline) and (close := cheap_and_close(points, baseline, full_cost)):
        return min(close, key=lambda p: p.multiply_adds)
    return min((p for p in points if p.multiply_adds < full_cost), key=lambda p: p.middle, default=None)


def linked_point(question: Question, points: Sequence[ErrorPoint]) -> ErrorPoint | None:
    """Return the point to whose matrix the page links: the one that the finding about softmax names.

    Until the error of equal weights is computed, it is the cheaper point with the smallest error. None if the finding
    says that equal weights have no error or an infinite one.
    """
    full_cost = cost_of_softmax(question) or math.inf
    for reference, comparable, baseline in by_reference(question, points):
        if reference == REFERENCE:
            has_no_answer = math.isinf(baseline) and question.options.measure == "kl"
            if has_no_answer or exact_baseline(question, points, reference):
                return None
            return named_point(comparable, baseline, full_cost)
    return None


def budget_findings(question: Question, points: Sequence[ErrorPoint]) -> Lines:
    """Return the cheapest setting of each variant with half the error of the plain mean, for each reference."""
    if hint := add_variant_hint(question):
        return [[Finding(hint)]]
    lines, full_cost = [], cost_of_softmax(question) or math.inf
    for reference, comparable, baseline in by_reference(question, points):
        if math.isinf(baseline) and question.options.measure == "kl":
            text = _(
                "Equal weights have an infinite KL divergence, because some weights of {reference} are 0 after "
                "rounding.",
                reference=reference_name(ac.get(reference)),
            )
            lines.append([Finding(text)])
            continue
        if not math.isfinite(baseline):
            continue  # The error of equal weights is not computed yet.
        if text := exact_baseline(question, points, reference):
            lines.append([Finding(text)])
            continue
        close, not_close = [], []
        for attention, group in question.by_variant(comparable):
            if close_points := cheap_and_close(group, baseline, full_cost):
                close.append((min(close_points, key=lambda p: p.multiply_adds), _(attention.title)))
            else:
                not_close.append(_(attention.title))
        best = named_point(comparable, baseline, full_cost)
        values = {"reference": reference_name(ac.get(reference)), "zero": error_text(question, baseline)}
        if best is None or not close:
            explanation = paragraph(
                _("Equal weights have {zero}.", **values),
                _(
                    "The best setting cheaper than softmax is {name}: {error}.",
                    name=sentence_name(ac.from_word(best.word)),
                    error=error_text(question, best.middle),
                )
                if best
                else "",
                _("Top-k does not count, because it computes all logits and costs at least as much as softmax here.")
                if (top_k := [p for p in comparable if p.variant == "topk"])
                and all(p.multiply_adds >= full_cost for p in top_k)
                else "",
            )
            text = (
                _("**No setting shown that is cheaper than softmax halves the error of equal weights.**")
                if reference == REFERENCE
                else _(
                    "**Compared with {reference}, no setting shown that is cheaper than softmax halves the error of "
                    "equal weights.**",
                    **values,
                )
            )
            lines.append([Finding(text, explanation)])
            continue
        (_cheapest, _title), *others = sorted(close, key=lambda each: each[0].multiply_adds)
        values |= {
            "name": sentence_name(ac.from_word(best.word)),
            "error": error_text(question, best.middle),
            "share": percent(best.multiply_adds / full_cost),
            "saved": percent(1 - best.multiply_adds / full_cost),
        }
        if reference != REFERENCE:
            text = N_(
                "**Compared with {reference}, {name} is the cheapest setting shown that at least halves the error of "
                "equal weights. It has {error} at {share} of softmax's multiply-adds.**"
            )
        elif best.multiply_adds > CHEAP_SHARE * full_cost:
            text = N_(
                "**{name} is the cheapest setting shown that at least halves the error of equal weights ({error}), but "
                "it saves only {saved} of softmax's multiply-adds.**"
            )
        else:
            text = N_(
                "**{name} is the cheapest setting shown that at least halves the error of equal weights. It has "
                "{error} at {share} of softmax's multiply-adds.**"
            )
        explanation = paragraph(
            _("Equal weights have {zero}.", **values),
            _n(
                "{names} also at least halves this error.",
                "{names} also at least halve this error.",
                n=len(others),
                names=enumeration(title for _point, title in others),
            )
            if others
            else "",
            _n(
                "{names} does not halve it at any setting cheaper than softmax.",
                "{names} do not halve it at any setting cheaper than softmax.",
                n=len(not_close),
                names=enumeration(not_close),
            )
            if not_close
            else "",
        )
        lines.append([Finding(_(text, **values), explanation)])
    return lines
