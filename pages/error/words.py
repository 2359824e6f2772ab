"""The findings of the Error page, one function for each view, and the scale of the error axis."""

import math
from collections.abc import Iterator, Mapping, Sequence

import attention_core as ac
from app.state.session import REFERENCE
from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import every_key, reference_name, sentence_name
from attention_core.experiments.error import UNIFORM, ErrorPoint, best_within_cost
from attention_core.formatting import percent
from pages.error.options import ROUNDING_ERROR, Question
from pages.error.reasons import cause

CHEAP_SHARE = 0.5
"""Share of softmax's cost up to which variants are compared, so that the saving is noticeable."""
NEXT_BEST = 1.1
"""A variant with a smaller error is mentioned too if its cost is at most this multiple of half of softmax's cost."""
CLOSE_ERROR_SHARE = 0.5
"""Share of the error of equal weights up to which an error counts as small. The sentences say “half”."""
ALMOST_EXACT = 0.05
"""Share of the error of equal weights up to which a variant counts as almost exact."""
AXIS_END_RATIO = 2
"""Right end of the axis of costs, as a multiple of softmax's cost. Beyond it, names would be far from their lines."""


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


def cost_findings(question: Question, points: Sequence[ErrorPoint], times: Mapping[str, float] | None = None) -> Lines:
    """Return the best variant at half of softmax's cost or less, for each reference on a line of its own.

    Args:
        question: what the visitor compares.
        points: points of the variants.
        times: milliseconds by word if the cost is measured time; None if it is counted in multiply-adds.
    """
    if (full_cost := cost_of_softmax(question, times)) is None:
        return []  # Softmax's time is not measured yet.
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


def cost_of_softmax(question: Question, times: Mapping[str, float] | None = None) -> float | None:
    """Return softmax's cost in multiply-adds or, with times, in ms; None if it is not measured."""
    if times is None:
        n, softmax = question.queries or question.n, ac.get(REFERENCE)
        return softmax.cost(n, question.d, causal=question.causal, keys=question.n).multiply_adds
    return times.get(REFERENCE)


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
        N_(
            "**{condition}, {name} comes closest of the settings shown: {error}, compared with {zero} for equal "
            "weights.**"
        )
        if reference == REFERENCE
        else N_(
            "**{condition}, {name} comes closest to {reference} of the settings shown: {error}, compared with {zero} "
            "for equal weights.**"
        )
    )
    if values["zero"] == question.format_error(best.middle):
        text = N_(
            "**{condition}, {name} comes closest to {reference} of the settings shown: {error}, hardly less than equal "
            "weights.**"
        )
    elif not math.isfinite(baseline):
        text = N_("**{condition}, {name} comes closest to {reference} of the settings shown: {error}.**")
    return Finding(_(text, **values))


def baseline_error(question: Question, baseline: float) -> str:
    """Return the error of the baseline, uniform attention; empty while it is not computed."""
    if not math.isfinite(baseline):
        return ""
    return _(
        "Equal weights on {keys} have {zero}.",
        keys=every_key(causal=question.causal),
        zero=error_text(question, baseline),
    )


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
            # A setting that costs as much as softmax is usually softmax itself, such as a window over the whole text.
            if close_points := [
                p for p in group if p.middle <= CLOSE_ERROR_SHARE * baseline and p.multiply_adds < full_cost
            ]:
                close.append((min(close_points, key=lambda p: p.multiply_adds), _(attention.title)))
            else:
                not_close.append(_(attention.title))
        values = {"reference": reference_name(ac.get(reference)), "zero": error_text(question, baseline)}
        if not close:
            best = min((p for p in comparable if p.multiply_adds < full_cost), key=lambda p: p.middle, default=None)
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
        (cheapest, _title), *others = sorted(close, key=lambda each: each[0].multiply_adds)
        values |= {
            "name": sentence_name(ac.from_word(cheapest.word)),
            "error": error_text(question, cheapest.middle),
            "share": percent(cheapest.multiply_adds / full_cost),
            "saved": percent(1 - cheapest.multiply_adds / full_cost),
        }
        if reference != REFERENCE:
            text = N_(
                "**Compared with {reference}, {name} is the cheapest setting shown that at least halves the error of "
                "equal weights: {share} of softmax's multiply-adds, {error}.**"
            )
        elif cheapest.multiply_adds > CHEAP_SHARE * full_cost:
            text = N_(
                "**{name} is the cheapest setting shown that at least halves the error of equal weights ({error}), but "
                "it saves only {saved} of softmax's multiply-adds.**"
            )
        else:
            text = N_(
                "**{name} is the cheapest setting shown that at least halves the error of equal weights: {share} of "
                "softmax's multiply-adds, {error}.**"
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
        is_cheaper, explanation = any(p.multiply_adds < cost.multiply_adds for p in tied), ""
        if best.middle >= baseline:
            text = _("**At {length}, no variant shown is closer to {reference} than equal weights.**", **values)
            explanation = _("The best, {name}, has {error}.", **values)
        elif len(tied) > 1:
            text = _("**At {length}, {names} are equally close to {reference}, with {error}.**", **values)
            explanation = "" if is_cheaper else _("They are not cheaper than softmax.")
        elif is_cheaper:
            text = _("**At {length}, {name} is closest to {reference}, with {error}.**", **values)
        else:
            text = _(
                "**At {length}, {name} is closest to {reference}, with {error}, but it is not cheaper than softmax.**",
                **values,
            )
        group = [p for p in points if p.word == best.word and math.isfinite(p.middle)]
        trend = "" if len(tied) > 1 else length_trend(question, group)
        explanation = paragraph(explanation, baseline_error(question, baseline), trend)
        lines.append([Finding(text, explanation)])
    cause = _(
        "The settings stay the same while the text grows, so a window, for example, covers a smaller share of the "
        "pairs."
    )
    return [*lines, [Finding("", paragraph(outgrown_settings(question, points), cause))]] if lines else []


def outgrown_settings(question: Question, points: Sequence[ErrorPoint]) -> str:
    """Return which variants are almost exact only while the length does not exceed their setting; may be empty."""
    if question.queries:
        return ""
    found = []
    baselines = {(p.reference, p.n): p.middle for p in points if p.variant == UNIFORM}
    for _attention, group in question.by_variant(points):
        group = sorted(group, key=lambda p: p.n)
        limits = [max(ALMOST_EXACT * baselines.get((p.reference, p.n), 0.0), question.rounding_error) for p in group]
        exact = [p.middle <= limit for p, limit in zip(group, limits, strict=True)]
        count = exact.index(False) if False in exact else len(group)
        if 0 < count < len(group) and True not in exact[count:]:
            last, first = group[count - 1], group[count]
            if isinstance(last.value, int) and last.n <= last.value < first.n:
                found.append(_("{name} (up to {n:,} tokens)", name=sentence_name(ac.from_word(last.word)), n=last.n))
    if not found:
        return ""
    return _n(
        "In short texts, {names} has at most {share} of the error of equal weights.",
        "In short texts, {names} have at most {share} of the error of equal weights.",
        n=len(found),
        share=percent(ALMOST_EXACT),
        names=enumeration(found),
    )


def length_trend(question: Question, group: Sequence[ErrorPoint]) -> str:
    """Return how one variant's error changes from the shortest to the greatest length; empty for one length."""
    first, last = min(group, key=lambda p: p.n), max(group, key=lambda p: p.n)
    if first.n == last.n:
        return ""
    before, after = question.format_error(first.middle), question.format_error(last.middle)
    values = {"a": first.n, "b": last.n, "first": before, "last": after, "name": sentence_name(ac.from_word(last.word))}
    if question.queries:
        if before == after:
            return _("From {a:,} to {b:,} keys, the error of {name} stays at {last}.", **values)
        if first.middle < last.middle:
            return _("From {a:,} to {b:,} keys, the error of {name} rises from {first} to {last}.", **values)
        return _("From {a:,} to {b:,} keys, the error of {name} falls from {first} to {last}.", **values)
    if before == after:
        return _("From {a:,} to {b:,} tokens, the error of {name} stays at {last}.", **values)
    if first.middle < last.middle:
        return _("From {a:,} to {b:,} tokens, the error of {name} rises from {first} to {last}.", **values)
    return _("From {a:,} to {b:,} tokens, the error of {name} falls from {first} to {last}.", **values)
