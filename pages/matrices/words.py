"""Sentences on how the matrices differ, each computed only from the numbers on screen."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.state.session import REFERENCE
from app.words.i18n import _, paragraph
from app.words.isolation import isolated
from app.words.labels import label, reference_name
from attention_core.analysis.matrix.compare import Compared
from attention_core.analysis.matrix.head_scores import HeadScores
from attention_core.analysis.matrix.telling_row import SEEN, Share
from attention_core.formatting import format_readable, formatted, span
from attention_core.metrics.passport import NEGATIVE, rows_are_distributions, rows_of_one
from attention_core.variant import Attention


@dataclass(frozen=True, kw_only=True)
class Rival:
    """The output error of one variant, compared with a baseline.

    Attributes:
        name: name on screen.
        error: relative error of the variant's output against its reference.
        zero: relative error of the plain mean of the values.
    """

    name: str
    error: float
    zero: float


def in_one_sentence(attention: Attention, found: Compared) -> str:
    """Return the effect of this variant on this input, with its numbers."""
    numbers, name = found.passport, label(attention)
    if attention.word == REFERENCE:
        return _(
            "**{name}** spreads a query's weight like {count:.1f} equally weighted keys (entropy {entropy:.2f} nats).",
            name=name,
            count=numbers.perplexity,
            entropy=numbers.entropy,
        )
    fields = {
        "name": name,
        "reference": reference_name(attention),
        "wrong": numbers.total_variation,
        "matrix": numbers.relative_error,
        "error": found.output_error,
        "zero": found.uniform_error,
    }
    if rows_are_distributions(numbers.row_sum_min, numbers.row_sum_max, numbers.negative_mass):
        return _(
            "**{name}** puts {wrong:.0%} of its mass on other tokens than {reference} does; its output is off by "
            "{error:.0%} (the plain mean of the values by {zero:.0%}).",
            **fields,
        )
    signed = numbers.negative_mass > NEGATIVE
    return paragraph(
        _(
            "The matrix of **{name}** is off by {matrix:.0%} from {reference}'s, its output by {error:.0%} (the plain "
            "mean of the values by {zero:.0%}).",
            **fields,
        ),
        _("{share:.1%} of its mass is negative.", share=numbers.negative_mass) if signed else "",
    )


def overall(matrices: Mapping[Attention, Compared]) -> str:
    """Return how far the variants on screen are from their references (softmax for nearly all)."""
    groups: dict[str, list[Rival]] = {_(REFERENCE): []}
    for attention, found in matrices.items():
        if attention.word != REFERENCE:
            rival = Rival(name=label(attention), error=found.output_error, zero=found.uniform_error)
            groups.setdefault(reference_name(attention), []).append(rival)
    text = paragraph(*(headline(against, rivals) for against, rivals in groups.items() if rivals))
    return text or _("Add a variant to compare it with softmax on the same queries, keys and values.")


def headline(against: str, rivals: Sequence[Rival]) -> str:
    """Return which variants come closest to their reference and which are farthest, in the same words in any order.

    Variants whose error is not finite are not ranked but named.

    Args:
        against: the reference's name.
        rivals: at least one, all compared with this reference.
    """
    ranked = sorted((each for each in rivals if math.isfinite(each.error)), key=lambda each: each.name)
    broken = sorted(each.name for each in rivals if not math.isfinite(each.error))
    zero = rivals[0].zero
    if ranked and not math.isfinite(zero):
        return paragraph(_("The output of {against} itself is not finite.", against=against), not_finite(broken))
    words = _ranked(against, ranked) if ranked else ""
    if against != _(REFERENCE):
        words = paragraph(words, _("What is held against {against} is not ranked beside the others.", against=against))
    return paragraph(words, not_finite(broken))


def not_finite(names: Sequence[str]) -> str:
    """Return which variants have numbers that are not finite, and what helps; empty for none."""
    if not names:
        return ""
    return _(
        "No error can be computed for **{names}**: some of its numbers are not finite. Smaller queries and keys help.",
        names=", ".join(names),
    )


def _ranked(against: str, rivals: Sequence[Rival]) -> str:
    """Return the ranking of variants with finite errors next to a finite error of the plain mean of the values."""
    errors = [_shown(rival.error) for rival in rivals]
    low, high, zero = min(errors), max(errors), rivals[0].zero
    fields = {
        "against": against,
        "zero": zero,
        "error": min(rival.error for rival in rivals),
        "most": max(rival.error for rival in rivals),
        "first": ", ".join(rival.name for rival, error in zip(rivals, errors, strict=True) if error == low),
        "last": ", ".join(rival.name for rival, error in zip(rivals, errors, strict=True) if error == high),
    }
    if low == high and len(rivals) > 1:
        fields["first"] = _("all of these")
    better = low < _shown(zero)
    if low == high and better:
        words = _(
            "On this input the output of **{first}** is off by {error:.0%} from {against}'s; the plain mean of the "
            "values would be off by {zero:.0%}.",
            **fields,
        )
    elif low == high:
        words = _(
            "On this input the output of **{first}** is off by {error:.0%} from {against}'s: no closer than the plain "
            "mean of the values, which is off by {zero:.0%}.",
            **fields,
        )
    elif better:
        words = _(
            "On this input the output closest to {against}'s is that of **{first}**, off by {error:.0%}; the farthest "
            "that of **{last}**, off by {most:.0%}. The plain mean of the values would be off by {zero:.0%}.",
            **fields,
        )
    else:
        words = _(
            "On this input no output comes closer to {against}'s than the plain mean of the values, which is off by "
            "{zero:.0%}: that of **{first}** is off by {error:.0%}, that of **{last}**, the farthest, by {most:.0%}.",
            **fields,
        )
    return words


def _shown(error: float) -> float:
    """Return an error with the precision shown, so that errors that read the same rank equally."""
    return float(f"{error:.0%}".rstrip("%"))


def caption(attention: Attention, found: Compared, *, difference: bool, hidden: bool) -> str:
    """Return the line under a panel's title: errors and their reference, entropy, and row sums other than one.

    Args:
        attention: the variant.
        found: its numbers.
        difference: whether the panel shows the difference from the reference.
        hidden: whether special tokens are hidden. The matrix error then covers the shown tokens only, the output
            error all tokens.
    """
    numbers = found.passport
    if not math.isfinite(numbers.row_sum_max):
        return _("some weights are not finite: smaller queries and keys help")
    entropy = _("entropy {entropy:.2f} nats", entropy=numbers.entropy).replace(" ", "\N{NO-BREAK SPACE}")
    if attention.word == REFERENCE:
        return entropy
    values = {"error": numbers.relative_error, "output": found.output_error, "reference": reference_name(attention)}
    if hidden:
        words = _("matrix error {error:.2f} (shown tokens) · output error {output:.2f} (all tokens)", **values)
    else:
        words = _("matrix error {error:.2f} · output error {output:.2f}", **values)
    if difference:
        words = _("minus {reference} · {errors}", errors=words, **values)
    elif attention.variant.reference is not None:
        words = _("{errors} · compared with {reference}", errors=words, **values)
    words += f" · {entropy}"
    if not rows_of_one(numbers.row_sum_min, numbers.row_sum_max):
        words += " · " + _("rows sum to {sums}", sums=span(numbers.row_sum_min, numbers.row_sum_max, ".3g"))
    if numbers.negative_mass > NEGATIVE:
        words += " · " + _("{share:.1%} negative", share=numbers.negative_mass)
    return words


def looks_at(most: Sequence[Share], labels: Sequence[str]) -> str:
    """Return the keys with the largest weights of a query, the largest first."""
    if not most:
        return _("spread so thin that no key has {least} of it", least=SEEN)
    return _("looks most at {keys}", keys=_keys(most, labels, ".2f"))


def changed(lost: Sequence[Share], gained: Sequence[Share], labels: Sequence[str], against: str) -> str:
    """Return the keys whose weight for a query decreased or increased most in a variant, compared with a reference."""
    parts = [
        _("lost most: {keys}", keys=_keys(lost, labels, "+.2f")) if lost else "",
        _("gained most: {keys}", keys=_keys(gained, labels, "+.2f")) if gained else "",
    ]
    if not any(parts):
        return _("within {least} of {against} on every key", least=SEEN, against=against)
    words = " · ".join(filter(None, parts))
    return words if against == _(REFERENCE) else _("against {against}: {words}", against=against, words=words)


def _keys(shares: Sequence[Share], labels: Sequence[str], form: str) -> str:
    return ", ".join(f"“{isolated(labels[each.key])}” {formatted(each.weight, form)}" for each in shares)


def head_in_words(scores: HeadScores) -> str:
    """Return a head's position and all its scores, in words."""
    text = ", ".join(
        f"{_(column.label)} {format_readable(getattr(scores, name), 2)}"
        for name, column in HeadScores.columns().items()
    )
    return _("layer {layer}, head {head}: {scores}", layer=scores.layer, head=scores.head, scores=text)


def leading(ranking: Sequence[HeadScores], by: str) -> str:
    """Return which head has the highest rank by a score, or why the score ranks no head.

    Args:
        ranking: all heads, ranked by the score.
        by: name of the score.
    """
    first, score = ranking[0], HeadScores.columns()[by].label
    value = getattr(first, by)
    if math.isnan(value) and by == "induction":
        return _(
            "No token repeats in this input, so no head can show induction; the preset “Repeated sequence” says every "
            "word twice."
        )
    if math.isnan(value):
        return _("One token alone has no token before it and no other to look at: {score} is not told.", score=_(score))
    values = {"layer": first.layer, "head": first.head, "value": format_readable(value, 2)}
    meaning = {
        "induction": _(
            "**Layer {layer}, head {head}** comes first: a repeated token gives {value} of its weight, in the mean, to "
            "what followed it before.",
            **values,
        ),
        "previous": _(
            "**Layer {layer}, head {head}** comes first: it gives {value} of its weight, in the mean, to the token "
            "just before.",
            **values,
        ),
        "sink": _(
            "**Layer {layer}, head {head}** comes first: it gives {value} of its weight, in the mean, to the first "
            "token shown.",
            **values,
        ),
        "entropy": _(
            "**Layer {layer}, head {head}** is the most decided: an entropy of {value} nats, in the mean.", **values
        ),
        "distance": _(
            "**Layer {layer}, head {head}** stays closest: it looks {value} tokens away, in the mean.", **values
        ),
    }
    return meaning[by]
