"""Sentences of the Error page: a summary of the chart, and notes on how to read it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import attention_core as ac
from app.figures.lines.curves import Curve
from app.state.session import REFERENCE
from app.ui.about import what_is_counted
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import label, reference_name
from attention_core.experiments.error import SEEDS, UNIFORM, ErrorPoint, best_within
from pages.error.options import Question

SHARE = 0.5
"""Share of softmax's cost up to which variants are compared, so that the saving is noticeable."""
ALMOST = 0.6
"""Share of softmax's cost up to which a point counts as just above ``SHARE``."""
LOCAL, NYSTROM = "local", "nystrom"
"""Variants whose errors are explained."""
LARGER = 1.1
"""Smallest ratio of the sizes of two outputs at which one is called larger."""
MORE_NEGATIVE = 0.05
"""Smallest increase of the share of negative weights that explains an increase of the error."""
CLOSE = 0.5
"""Share of the error of a plain average of the values up to which an error counts as small."""


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


def amount(question: Question, error: float) -> str:
    """Return an error with the name of its metric."""
    texts = {
        "matrix": N_("{error} matrix error"),
        "mass": N_("{error} misplaced weight"),
        "kl": N_("a KL divergence of {error} nats"),
        "missed": N_("{error} missed top keys"),
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
    cost = _("multiply-adds") if times is None else _("measured time")
    lines = []
    for reference, own, zero in by_reference(question, found):
        best = best_within(own, SHARE * whole, times)
        text = verdict(best, zero=zero, question=question, reference=reference, cost=cost)
        lines.append(paragraph(text, just_above(question, own, best, cost=cost, whole=whole, times=times)))
    return request(question) or "  \n".join(lines)


def just_above(
    question: Question,
    own: Sequence[ErrorPoint],
    best: ErrorPoint | None,
    *,
    cost: str,
    whole: float,
    times: Mapping[str, float] | None,
) -> str:
    """Return the point just above half of softmax's cost if its error is smaller than the best below; else nothing.

    Args:
        question: what the visitor compares.
        own: points of the variants with one reference.
        best: point with the smallest error up to half of softmax's cost; None if no variant is that cheap.
        cost: name of the cost.
        whole: softmax's cost.
        times: milliseconds by word if the cost is measured time; None if it is counted.
    """
    almost = best_within(own, ALMOST * whole, times)
    if almost is None or almost == best or (best and question.written(almost.middle) == question.written(best.middle)):
        return ""
    price = almost.multiply_adds if times is None else times[almost.word]
    return _(
        "With {share:.0f}% of softmax's {cost}, {name} has {error}.",
        name=label(ac.from_word(almost.word)),
        share=100 * price / whole,
        cost=cost,
        error=amount(question, almost.middle),
    )


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
            "**All the variants that are compared with {reference} here need more than half of softmax's {cost}.**",
            **values,
        )
    values |= {"name": label(ac.from_word(best.word)), "error": amount(question, best.middle)}
    if best.middle >= zero:
        text = _(
            "With at most half of softmax's {cost}, **no variant shown is closer to {reference} than a plain average "
            "of the values**: the best, {name}, has {error}.",
            **values,
        )
    elif best.middle > CLOSE * zero:
        text = _(
            "With at most half of softmax's {cost}, **no variant shown comes close to {reference}**: the best, {name}, "
            "has {error}.",
            **values,
        )
    else:
        text = _(
            "With at most half of softmax's {cost}, **{name} is closest to {reference}**: it has {error}.", **values
        )
    return paragraph(text, average(question, zero))


def average(question: Question, zero: float) -> str:
    """Return the error of the baseline, uniform attention; empty while it is not computed."""
    if not math.isfinite(zero):
        return ""
    return _("A plain average of the values has {zero}.", zero=question.written(zero))


def against_budget(question: Question, found: Sequence[ErrorPoint]) -> str:
    """Return the cheapest setting of each variant with half the error of the plain mean, for each reference."""
    sentences = []
    for reference, rivals, zero in by_reference(question, found):
        if not math.isfinite(zero):
            continue  # Not computed yet.
        if not zero:
            sentences.append(
                _(
                    "A plain average of the values has no error compared with {reference}, so the errors on this input "
                    "do not distinguish the variants.",
                    reference=reference_name(ac.get(reference)),
                )
            )
            continue
        reached, missed = [], []
        for attention, own in question.by_variant(rivals):
            good = [p for p in own if p.middle <= CLOSE * zero]
            if good:
                best = min(good, key=lambda p: p.multiply_adds)
                reached.append(f"**{label(ac.from_word(best.word))}**")
            else:
                missed.append(_(attention.title))
        values = {
            "reference": reference_name(ac.get(reference)),
            "half": amount(question, CLOSE * zero),
            "names": enumeration(reached),
        }
        if reached:
            sentences.append(
                _(
                    "Compared with {reference}, these settings have at most {half}, half the error of a plain average "
                    "of the values: {names}.",
                    **values,
                )
            )
            if missed:
                text = _n(
                    "{names} does not reach this error.",
                    "{names} do not reach this error.",
                    n=len(missed),
                    names=enumeration(missed),
                )
                sentences.append(text)
        else:
            sentences.append(
                _(
                    "Measured against {reference}, **no setting brings the error down to {half}**, half the error of a "
                    "plain average of the values.",
                    **values,
                )
            )
    why = _("A budget, such as a window, sets how much a variant computes, and so how close it can come to softmax.")
    return request(question) or (paragraph(why, *sentences) if sentences else "")


def explanation(question: Question, found: Sequence[ErrorPoint]) -> str:
    """Return the reasons for the errors over cost or budget, for each reference; empty over length."""
    if question.options.against == "length" or request(question):
        return ""
    return paragraph(
        *(
            reasons(question, rivals, zero)
            or _(
                "Cheaper variants skip pairs of tokens or summarise them, so they differ from {reference}.",
                reference=reference_name(ac.get(reference)),
            )
            for reference, rivals, zero in by_reference(question, found)
        )
    )


def reasons(question: Question, rivals: Sequence[ErrorPoint], zero: float) -> str:
    """Return why windows are worse than a plain average, and why more landmarks raise the error; empty if neither is.

    Args:
        question: what the visitor compares.
        rivals: points of the variants with one reference.
        zero: error of uniform attention, the plain mean of the values.
    """
    sentences = []
    for attention, own in question.by_variant(rivals):
        own = sorted(own, key=lambda p: p.budget)
        if attention.key == LOCAL and (worse := [p for p in own if p.middle > zero]):
            sentences.append(narrow_windows(question, worse))
        if attention.key == NYSTROM:
            sentences.append(more_landmarks(question, own))
    return paragraph(*sentences)


def narrow_windows(question: Question, worse: Sequence[ErrorPoint]) -> str:
    """Return why these windows have a larger error than a plain average of the values."""
    # Both bounds are rounded outwards, so that the sentence holds for every window.
    values = {
        "windows": enumeration(f"{p.value}" for p in worse),
        "hidden": math.floor(100 * min(p.mass for p in worse)),
        "size": math.ceil(10 * max(p.size for p in worse)) / 10,
    }
    worst = _n(
        "**Local** with window {windows} is worse than a plain average of the values.",
        "**Local** with windows {windows} is worse than a plain average of the values.",
        n=len(worse),
        **values,
    )
    if question.options.measure != "output" or min(p.size for p in worse) < LARGER:
        return paragraph(
            worst, _("It hides at least {hidden}% of softmax's weight and scales the rest up to 100%.", **values)
        )
    return paragraph(
        worst,
        _(
            "It hides at least {hidden}% of softmax's weight and scales the rest up to 100%, so its output becomes up "
            "to {size:.1f} times as large as softmax's.",
            **values,
        ),
    )


def more_landmarks(question: Question, own: Sequence[ErrorPoint]) -> str:
    """Return the step at which more landmarks raise the error and negative weights most; empty if no step does.

    Nyström's other two factors have no negative entries, so negative weights come from large entries of the inverse.
    On 24 texts and layers, leaving small singular values out of the inverse lowered the error at 51 of 52 such steps.

    Args:
        question: what the visitor compares.
        own: the points of Nyström attention, fewest landmarks first.
    """
    steps = [
        (fewer, more)
        for fewer, more in pairwise(own)
        if more.middle > fewer.middle
        and question.written(more.middle) != question.written(fewer.middle)
        and more.negative_mass - fewer.negative_mass >= MORE_NEGATIVE
    ]
    if not steps:
        return ""
    fewer, more = max(steps, key=lambda step: step[1].negative_mass - step[0].negative_mass)
    return _(
        "**Nyström** gets worse from {fewer} to {more} landmarks, because its inverse matrix creates negative weights: "
        "{after:.0f}% of all weight instead of {before:.0f}%.",
        fewer=fewer.value,
        more=more.value,
        before=100 * fewer.negative_mass,
        after=100 * more.negative_mass,
    )


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
                "At {n:,} tokens, **no variant shown is closer to {reference} than a plain average of the values**: "
                "the best, {name}, has {error}.",
                **values,
            )
        else:
            text = _("At {n:,} tokens, **{name} is closest to {reference}**: it has {error}.", **values)
        own = [p for p in found if p.word == best.word and math.isfinite(p.middle)]
        sentences += [text, average(question, zero), trend(question, own)]
    why = _("With fixed settings, a variant must represent more pairs of tokens as the text grows.")
    return request(question) or (paragraph(why, *sentences) if sentences else "")


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


def beyond(question: Question, drawn: Sequence[Curve], end: float, right: float | None) -> list[str]:
    """Return which lines continue beyond the axes, in at most two sentences.

    Args:
        question: what the visitor compares.
        drawn: the lines.
        end: upper end of the vertical axis.
        right: right end of the horizontal axis; None if it shows all points.
    """
    sentences = []
    inside = {
        line.name: [y for x, y in zip(line.x, line.y, strict=True) if right is None or x <= right] for line in drawn
    }
    highest = {name: max((y for y in own if y is not None), default=0.0) for name, own in inside.items()}
    above = [
        _("{name} (up to {error})", name=name, error=question.written(y)) for name, y in highest.items() if y > end
    ]
    if above:
        sentences.append(
            _(
                "▲ marks lines that continue above the axis: {names}. Double-click the chart to show them.",
                names=enumeration(above),
            )
        )
    if dearer := [line.name for line in drawn if len(inside[line.name]) < len(line.x)]:
        sentences.append(
            _(
                "These variants have settings that cost more than softmax and lie beyond the chart: {names}. "
                "Double-click the chart to show them.",
                names=enumeration(dearer),
            )
        )
    return sentences


def block_costs(question: Question) -> list[str]:
    """Return why local attention can cost more than its share of the pairs; empty if it is not shown."""
    if not any(attention.key == "local" for attention in question.attentions):
        return []
    return [_("Local computes whole blocks of tokens, so its cost can include pairs outside its window.")]


def worse_than_mean(question: Question, found: Sequence[ErrorPoint]) -> list[str]:
    """Return which variants other than Local, which ``narrow_windows`` explains, are worse than uniform attention."""
    names = [
        _(attention.title)
        for _reference, rivals, zero in by_reference(question, found)
        for attention, own in question.by_variant(rivals)
        if attention.key != LOCAL and any(zero < p.middle for p in own)
    ]
    if not names:
        return []
    return [
        _(
            "These variants have settings with a larger error than a plain average, which uses the values of all "
            "allowed tokens: {names}.",
            names=enumeration(names),
        )
    ]


def notes(question: Question, found: Sequence[ErrorPoint]) -> list[str]:
    """Return the notes on variants and points that a reader of this chart may need, one or two sentences each."""
    sentences = []
    shown = dict(question.by_variant(found))
    if others := [_(a.title) for a in shown if is_replacement(a)]:
        sentences.append(
            _(
                "Open circles and dash-dotted lines mark variants that replace softmax instead of approximating it "
                "({names}). For these variants, a difference from softmax is not an error.",
                names=enumeration(others),
            )
        )
    for attention in shown:
        if attention.variant.reference is not None:
            sentences.append(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))
    if any(p.low < p.high for p in found):
        sentences.append(
            _(
                "Lines show medians, and bands show the middle half of the values, over {heads} heads. For random "
                "variants, the values include {seeds} seeds per head.",
                heads=question.heads,
                seeds=SEEDS,
            )
            if question.heads > 1
            else _(
                "For random variants, lines show medians, and bands show the middle half of the values, over {n} "
                "seeds.",
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


def reading_guide(question: Question, found: Sequence[ErrorPoint]) -> str:
    """Return the notes and the definitions of the terms, as Markdown."""
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
        "The **mean of values** is a baseline: uniform attention over the allowed keys. A variant with a larger "
        "error is worse than this simple average.\n\n"
        "The **floors** are lower bounds and apply to the matrix error only. No matrix of rank $m$ is closer to $S$ "
        "than the truncated SVD of $S$ (Eckart and Young). No matrix with $k$ non-zeros per row is closer to $S$ "
        "than the $k$ largest entries of each row of $S$."
    )
    return "\n\n".join(["\n".join(f"- {note}" for note in notes(question, found)), definitions])
