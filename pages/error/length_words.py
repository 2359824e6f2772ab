"""The findings of the view “By length” of the Error page: how errors change as the text grows."""

import math
from collections.abc import Sequence

import attention_core as ac
from app.state.session import REFERENCE
from app.words.finding import Finding, Lines
from app.words.i18n import _, _n, enumeration, paragraph
from app.words.labels import every_key, reference_name, sentence_name
from attention_core.experiments.error import UNIFORM, ErrorPoint
from pages.error.options import Question
from pages.error.words import add_variant_hint, by_reference, error_text, exact_baseline, near_equal_weights

ALMOST_EXACT = 0.05
"""Share of the error of equal weights up to which a variant counts as almost exact."""
MIN_PEAK_RATIO = 1.1
"""Smallest ratio of the largest error to the errors at both ends at which the text names the largest error."""


def length_findings(question: Question, points: Sequence[ErrorPoint]) -> Lines:
    """Return the best variant at the greatest length, and how its error changes with length, for each reference."""
    if hint := add_variant_hint(question):
        return [[Finding(hint)]]
    n = max((p.n for p in points), default=0)
    lines = []
    length = _n("{n:,} key", "{n:,} keys", n=n) if question.queries else _n("{n:,} token", "{n:,} tokens", n=n)
    longest = [p for p in points if p.n == n]
    for reference, comparable, baseline in by_reference(question, longest):
        finite = [p for p in comparable if math.isfinite(p.middle)]
        if not finite:
            continue
        if text := exact_baseline(question, longest, reference):
            lines.append([Finding(text)])
            continue
        best = min(finite, key=lambda p: p.middle)
        tied = [p for p in finite if p.middle - best.middle <= question.rounding_error]
        values = {
            "name": sentence_name(ac.from_word(best.word)),
            "names": enumeration(sentence_name(ac.from_word(p.word)) for p in tied),
            "reference": reference_name(ac.get(reference)),
            "error": error_text(question, best.middle),
            "length": length,
        }
        cost = ac.get(REFERENCE).cost(question.queries or n, question.d, causal=question.causal, keys=n)
        cheaper = [p for p in finite if p.multiply_adds < cost.multiply_adds]
        is_cheaper, explanation = any(p in cheaper for p in tied), ""
        closest_cheaper = closest(question, cheaper, baseline)
        if best.middle >= baseline:
            text = _("**At {length}, no variant shown is closer to {reference} than equal weights.**", **values)
            explanation = _("The best, {name}, has {error}.", **values)
        elif len(tied) > 1:
            text = _("**At {length}, {names} are equally close to {reference}, with {error}.**", **values)
            explanation = "" if is_cheaper else paragraph(_("They are not cheaper than softmax."), closest_cheaper)
        elif is_cheaper:
            text = _("**At {length}, {name} is closest to {reference}, with {error}.**", **values)
        else:
            text = _(
                "**At {length}, {name} is closest to {reference}, with {error}, but it is not cheaper than softmax.**",
                **values,
            )
            explanation = closest_cheaper
        group = [p for p in points if p.word == best.word and math.isfinite(p.middle)]
        near = near_equal_weights(question, longest) if reference == REFERENCE else ""
        trend = "" if len(tied) > 1 else length_trend(question, group)
        explanation = paragraph(explanation, baseline_error(question, baseline, length), near, trend)
        lines.append([Finding(text, explanation)])
    return lines


def closest(question: Question, cheaper: Sequence[ErrorPoint], baseline: float) -> str:
    """Return which of the variants that are cheaper than softmax has the smallest error; empty without variants.

    If its error is not smaller than that of equal weights (``baseline``), the variant is not named.
    """
    if not cheaper:
        return ""
    best = min(cheaper, key=lambda p: p.middle)
    if best.middle >= baseline:
        return _("No variant shown that is cheaper than softmax is closer to it than equal weights.")
    return _(
        "{name} is the closest variant that is cheaper than softmax, with {error}.",
        name=sentence_name(ac.from_word(best.word)),
        error=error_text(question, best.middle),
    )


def baseline_error(question: Question, baseline: float, length: str) -> str:
    """Return the error of the baseline, uniform attention, at the greatest length; empty while it is not computed."""
    if not math.isfinite(baseline):
        return ""
    return _(
        "At {length}, equal weights on {keys} have {zero}.",
        length=length,
        keys=every_key(causal=question.causal),
        zero=error_text(question, baseline),
    )


def outgrown_settings(question: Question, points: Sequence[ErrorPoint]) -> str:
    """Return which variants are (almost) exact only while the length does not exceed their setting; may be empty."""
    if question.queries:
        return ""
    found: dict[bool, dict[str, int]] = {True: {}, False: {}}
    baselines = {(p.reference, p.n): p.middle for p in points if p.variant == UNIFORM}
    for _attention, group in question.by_variant(points):
        group = sorted(group, key=lambda p: p.n)
        limits = [max(ALMOST_EXACT * baselines.get((p.reference, p.n), 0.0), question.rounding_error) for p in group]
        exact = [p.middle <= limit for p, limit in zip(group, limits, strict=True)]
        count = exact.index(False) if False in exact else len(group)
        if 0 < count < len(group) and True not in exact[count:]:
            last, first = group[count - 1], group[count]
            if isinstance(last.value, int) and last.n <= last.value < first.n:
                is_exact = max(p.middle for p in group[:count]) <= question.rounding_error
                found[is_exact][sentence_name(ac.from_word(last.word))] = last.n
    lists = {
        kind: enumeration(_("{name} (up to {n:,} tokens)", name=name, n=n) for name, n in names.items())
        for kind, names in found.items()
    }
    exact_text = _n(
        "{names} is exact, because its setting is at least as large as the text.",
        "{names} are exact, because their settings are at least as large as the text.",
        n=len(found[True]),
        names=lists[True],
    )
    almost_text = _n(
        "{names} is almost exact, because its setting is at least as large as the text.",
        "{names} are almost exact, because their settings are at least as large as the text.",
        n=len(found[False]),
        names=lists[False],
    )
    return paragraph(exact_text * bool(found[True]), almost_text * bool(found[False]))


def length_trend(question: Question, group: Sequence[ErrorPoint]) -> str:
    """Return how one variant's error changes from the shortest to the greatest length; empty for one length.

    The largest error is included if it is at a length in between and clearly larger than at both ends.
    """
    first, last = min(group, key=lambda p: p.n), max(group, key=lambda p: p.n)
    if first.n == last.n:
        return ""
    peak = max(group, key=lambda p: p.middle)
    before, after, largest = (question.format_error(p.middle) for p in (first, last, peak))
    values = {"a": first.n, "b": last.n, "first": before, "last": after, "name": sentence_name(ac.from_word(last.word))}
    if question.queries:
        if before == after:
            text = _("At {a:,} and at {b:,} keys, the error of {name} is {last}.", **values)
        elif first.middle < last.middle:
            text = _("From {a:,} to {b:,} keys, the error of {name} rises from {first} to {last}.", **values)
        else:
            text = _("From {a:,} to {b:,} keys, the error of {name} falls from {first} to {last}.", **values)
    elif before == after:
        text = _("At {a:,} and at {b:,} tokens, the error of {name} is {last}.", **values)
    elif first.middle < last.middle:
        text = _("From {a:,} to {b:,} tokens, the error of {name} rises from {first} to {last}.", **values)
    else:
        text = _("From {a:,} to {b:,} tokens, the error of {name} falls from {first} to {last}.", **values)
    larger_end = max(first.middle, last.middle, question.rounding_error)
    if peak.middle < MIN_PEAK_RATIO * larger_end:
        return text
    return paragraph(text, _("In between, it is up to {error}, at n = {n:,}.", error=largest, n=peak.n))
