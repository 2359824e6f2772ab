"""Sentences of the Error page: what its chart shows, for each view."""

import math
from collections.abc import Iterator, Mapping, Sequence

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import every_key, label, reference_name
from attention_core.experiments.error import UNIFORM, ErrorPoint, best_within
from attention_core.formatting import percent
from pages.error.options import Question
from pages.error.reasons import cause

SHARE = 0.5
"""Share of softmax's cost up to which variants are compared, so that the saving is noticeable."""
SLIGHTLY = 1.1
"""Largest ratio of a cost to half of softmax's cost at which a better variant is named too."""
CLOSE = 0.5
"""Share of the error of equal weights up to which an error counts as small."""
BEYOND = 2
"""Right end of the axis of costs as a multiple of softmax's cost, near enough that names are next to their lines."""


def is_replacement(attention: ac.Attention) -> bool:
    """Return whether a variant is intended to differ from softmax, so that its error has no target of zero."""
    variant = attention.variant
    return variant.approximates is None and variant.reference is None and attention.key != REFERENCE


def by_reference(question: Question, found: Sequence[ErrorPoint]) -> Iterator[tuple[str, list[ErrorPoint], float]]:
    """Yield each reference with its variants' points and the error of uniform attention; softmax first."""
    rivals = [p for _attention, own in question.by_variant(found) for p in own]
    for reference in dict.fromkeys(p.reference for p in sorted(rivals, key=lambda p: p.reference != REFERENCE)):
        zero = next((p.middle for p in found if (p.variant, p.reference) == (UNIFORM, reference)), math.inf)
        yield reference, [p for p in rivals if p.reference == reference], zero


def request(question: Question) -> str:
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


def amount(question: Question, error: float) -> str:
    """Return an error with the name of its metric."""
    texts = {
        "matrix": N_("{error} matrix error"),
        "mass": N_("{error} misplaced weight"),
        "kl": N_("a KL divergence of {error} nats"),
        "missed": N_("{error} of the top 10 keys missing"),
        "output": N_("{error} output error"),
        "turn": N_("a direction error of {error}"),
    }
    return _(texts[question.options.measure], error=question.written(error))


def against_cost(question: Question, found: Sequence[ErrorPoint], times: Mapping[str, float] | None = None) -> str:
    """Return the best variant at half of softmax's cost or less, for each reference on a line of its own.

    Args:
        question: what the visitor compares.
        found: points of the variants.
        times: milliseconds by word if the cost is measured time; None if it is counted in multiply-adds.
    """
    if (whole := cost_of_softmax(question, times)) is None:
        return ""  # Not measured yet.
    cost = cost_name(times)
    price = {p.word: float(p.multiply_adds) for p in found} if times is None else times
    lines = []
    for reference, own, zero in by_reference(question, found):
        best, next_best = (best_within(own, share * whole, times) for share in (SHARE, SLIGHTLY * SHARE))
        text = verdict(best, zero=zero, question=question, reference=reference, cost=cost)
        if best is not None:
            text = paragraph(
                text,
                scale(question, reference),
                cause(question, best),
                _(
                    "{name} needs slightly more than half of softmax's {cost} and has {error}."
                    if percent(price[next_best.word] / whole) == percent(SHARE)
                    else "{name} needs {share} of softmax's {cost} and has {error}.",
                    name=label(ac.from_word(next_best.word)),
                    share=percent(price[next_best.word] / whole),
                    cost=cost,
                    error=amount(question, next_best.middle),
                )
                if next_best and question.written(next_best.middle) != question.written(best.middle)
                else "",
                _(
                    "Equal weights on {keys} need {share} of softmax's {cost} and have {error}.",
                    keys=every_key(causal=question.causal),
                    share=percent(price[UNIFORM] / whole),
                    cost=cost,
                    error=amount(question, zero),
                )
                if math.isfinite(zero) and UNIFORM in price
                else "",
            )
        lines.append(text)
    return request(question) or "  \n".join(lines)


def scale(question: Question, reference: str) -> str:
    """Return one sentence that gives the scale of the chosen metric."""
    texts = {
        "matrix": N_("A matrix error of 100% is as large as {reference}'s matrix itself."),
        "mass": N_(
            "If 100% of the weight is misplaced, the variant gives all its weight to keys that have no weight "
            "in {reference}."
        ),
        "kl": N_("A KL divergence of 0 nats means the same weights as {reference}'s."),
        "missed": N_(
            "If 100% of the top 10 keys are missing, {reference}'s 10 heaviest keys and the variant's 10 heaviest "
            "keys have no key in common."
        ),
        "output": N_("An output error of 100% is as large as {reference}'s output itself."),
        "turn": N_("A direction error of 0 means the same direction as {reference}'s output; 1 means a right angle."),
    }
    return _(texts[question.options.measure], reference=reference_name(ac.get(reference)))


def nearest(question: Question, found: Sequence[ErrorPoint]) -> ErrorPoint | None:
    """Return the point closest to softmax at half of its multiply-adds or less; None if no variant is that cheap."""
    rivals = [p for _attention, own in question.by_variant(found) for p in own if p.reference == REFERENCE]
    return best_within(rivals, SHARE * (cost_of_softmax(question) or 0.0))


def cost_of_softmax(question: Question, times: Mapping[str, float] | None = None) -> float | None:
    """Return softmax's cost in multiply-adds or, with times, in ms; None if it is not measured."""
    if times is None:
        n, softmax = question.queries or question.n, ac.get(REFERENCE)
        return softmax.cost(n, question.d, causal=question.causal, keys=question.n).multiply_adds
    return times.get(REFERENCE)


def verdict(best: ErrorPoint | None, *, zero: float, question: Question, reference: str, cost: str) -> str:
    """Return the sentence about variants with one reference at half of softmax's cost.

    Args:
        best: point with the smallest error at that cost; None if no variant is that cheap.
        zero: error of uniform attention, the plain mean of the values.
        question: what the visitor compares.
        reference: key of the reference.
        cost: name of the cost.
    """
    values = {"reference": reference_name(ac.get(reference)), "cost": cost}
    if best is None:
        return _(
            "**Every variant that is compared with {reference} here needs more than half of softmax's {cost}.**",
            **values,
        )
    values |= {"name": label(ac.from_word(best.word)), "error": amount(question, best.middle)}
    if best.middle >= zero:
        return _(
            "**With at most half of softmax's {cost}, no variant shown is closer to {reference} than equal weights.** "
            "The best, {name}, has {error}.",
            **values,
        )
    if best.middle <= CLOSE * zero:
        return _(
            "**With at most half of softmax's {cost}, {name} is closest to {reference}.** It has {error}.", **values
        )
    if reference == REFERENCE:
        return _(
            "**With at most half of softmax's {cost}, even the best variant shown ({name}) has {error}.**", **values
        )
    return _(
        "**With at most half of softmax's {cost}, even the best variant compared with {reference} ({name}) has "
        "{error}.**",
        **values,
    )


def average(question: Question, zero: float) -> str:
    """Return the error of the baseline, uniform attention; empty while it is not computed."""
    if not math.isfinite(zero):
        return ""
    return _(
        "Equal weights on {keys} have {zero}.", keys=every_key(causal=question.causal), zero=amount(question, zero)
    )


def against_budget(question: Question, found: Sequence[ErrorPoint]) -> str:
    """Return the cheapest setting of each variant with half the error of the plain mean, for each reference."""
    sentences, whole = [], cost_of_softmax(question) or math.inf
    for reference, rivals, zero in by_reference(question, found):
        if not math.isfinite(zero):
            continue  # Not computed yet.
        if not zero:
            sentences.append(
                _(
                    "On this input, even equal weights have no error compared with {reference}. The errors therefore "
                    "cannot show which variant is better.",
                    reference=reference_name(ac.get(reference)),
                )
            )
            continue
        reached, missed = [], []
        for attention, own in question.by_variant(rivals):
            # A setting that costs as much as softmax is usually softmax itself, such as a window over the whole text.
            if good := [p for p in own if p.middle <= CLOSE * zero and p.multiply_adds < whole]:
                reached.append((min(good, key=lambda p: p.multiply_adds), _(attention.title)))
            else:
                missed.append(_(attention.title))
        values = {"reference": reference_name(ac.get(reference)), "zero": amount(question, zero)}
        if not reached:
            best = min((p for p in rivals if p.multiply_adds < whole), key=lambda p: p.middle, default=None)
            sentences += [
                _("**At a cost below softmax's, no variant shown comes close to {reference}.**", **values),
                _(
                    "The best cheaper setting, {name}, has {error}.",
                    name=label(ac.from_word(best.word)),
                    error=amount(question, best.middle),
                )
                if best
                else "",
                scale(question, reference),
                _("“Close” means at most half of the error of equal weights ({zero}).", **values),
            ]
            continue
        (cheapest, _title), *others = sorted(reached, key=lambda each: each[0].multiply_adds)
        sentences += [
            _(
                "**{name} is the cheapest setting shown that comes close to {reference}: it needs {share} of softmax's "
                "multiply-adds and has {error}.**",
                name=label(ac.from_word(cheapest.word)),
                share=percent(cheapest.multiply_adds / whole),
                error=amount(question, cheapest.middle),
                **values,
            ),
            scale(question, reference),
            _("“Close” means at most half of the error of equal weights ({zero}).", **values),
            _n(
                "{names} also comes close to {reference}.",
                "{names} also come close to {reference}.",
                n=len(others),
                names=enumeration(title for _point, title in others),
                **values,
            )
            if others
            else "",
            _n(
                "{names} does not come close to {reference} at any setting cheaper than softmax.",
                "{names} do not come close to {reference} at any setting cheaper than softmax.",
                n=len(missed),
                names=enumeration(missed),
                **values,
            )
            if missed
            else "",
        ]
    why = _("A budget, such as a window, limits how much a variant computes.")
    return request(question) or (paragraph(*sentences, why) if sentences else "")


def against_length(question: Question, found: Sequence[ErrorPoint]) -> str:
    """Return the best variant at the greatest length, and how its error changes with length, for each reference."""
    n = max((p.n for p in found), default=0)
    sentences = []
    for reference, rivals, zero in by_reference(question, [p for p in found if p.n == n]):
        finite = [p for p in rivals if math.isfinite(p.middle)]
        if not finite:
            continue
        best = min(finite, key=lambda p: p.middle)
        values: dict[str, str | int] = {
            "name": label(ac.from_word(best.word)),
            "reference": reference_name(ac.get(reference)),
            "error": amount(question, best.middle),
            "n": n,
        }
        if best.middle >= zero:
            text = _(
                "**At {n:,} tokens, no variant shown is closer to {reference} than equal weights.** The best, {name}, "
                "has {error}.",
                **values,
            )
        else:
            text = _("**At {n:,} tokens, {name} is closest to {reference}.** It has {error}.", **values)
        own = [p for p in found if p.word == best.word and math.isfinite(p.middle)]
        sentences += [text, scale(question, reference), average(question, zero), trend(question, own)]
    why = _(
        "A longer text has more pairs of tokens, but the settings stay the same. A window, for example, covers a "
        "smaller share of the pairs."
    )
    return request(question) or (paragraph(*sentences, why) if sentences else "")


def trend(question: Question, own: Sequence[ErrorPoint]) -> str:
    """Return how one variant's error changes from the shortest to the greatest length; empty for one length."""
    first, last = min(own, key=lambda p: p.n), max(own, key=lambda p: p.n)
    if first.n == last.n:
        return ""
    before, after = question.written(first.middle), question.written(last.middle)
    values = {"a": first.n, "b": last.n, "first": before, "last": after, "name": label(ac.from_word(last.word))}
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
