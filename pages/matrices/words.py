"""Sentences of the Matrices page other than the headline: about one variant, a panel, a pinned row, and the heads."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from app.state.session import REFERENCE
from app.words.i18n import _, _n, clauses, end_sentence, enumeration, paragraph, quote
from app.words.labels import every_key, reference_name, sentence_name
from attention_core.analysis.matrix.compare import MatrixComparison
from attention_core.analysis.matrix.head_scores import HeadScores, ranked
from attention_core.analysis.matrix.informative_query import MIN_SHOWN_WEIGHT, KeyWeight
from attention_core.attention import Attention
from attention_core.formatting import format_readable, formatted, percent, span
from attention_core.metrics.passport import NEGATIVE_TOLERANCE, rows_are_distributions, rows_sum_to_one
from pages.matrices.headline import negative_weights
from pages.matrices.ranking import in_percent

SMALL_WEIGHT, EVEN_RATIO = 0.05, 2.0
"""No key stands out if the largest weight is below ``SMALL_WEIGHT`` and below ``EVEN_RATIO`` times equal weights."""

MAX_SPREADS = 4
"""Maximum variants whose effective keys one sentence states."""

ROUNDING_ERROR = 1e-6
"""Total variation up to which two matrices have the same weights except for rounding, and size of a zero weight."""


def variant_sentence(attention: Attention, compared: MatrixComparison, *, causal: bool = False) -> str:
    """Return the effect of this variant on this input, compared with its reference."""
    metrics = compared.passport
    fields = {
        "name": sentence_name(attention),
        "reference": reference_name(attention),
        "wrong": metrics.total_variation,
        "matrix": metrics.relative_error,
        "error": compared.output_error,
        "zero": compared.uniform_error,
        "keys": every_key(causal=causal),
    }
    output = _("The output error is {error:,.0%} (with equal weights on {keys}: {zero:.0%}).", **fields)
    if rows_are_distributions(metrics.row_sum_min, metrics.row_sum_max, metrics.negative_mass):
        if metrics.total_variation < ROUNDING_ERROR:
            return paragraph(_("**{name}** gives the same weights as {reference}.", **fields), output)
        if in_percent(metrics.total_variation) == 0:
            little = _(
                "Compared with {reference}, **{name}** moves less than 0.5% of a row's weight to other keys, on "
                "average.",
                **fields,
            )
            return paragraph(little, output)
        return paragraph(
            _(
                "Compared with {reference}, **{name}** moves {wrong:.0%} of a row's weight to other keys, on average.",
                **fields,
            ),
            output,
        )
    signed = metrics.negative_mass > NEGATIVE_TOLERANCE
    return paragraph(
        _("The matrix of **{name}** differs from the matrix of {reference} by {matrix:,.0%} (matrix error).", **fields),
        output,
        _("Negative weights make up {share:.1%} of the sum of absolute weights.", share=metrics.negative_mass)
        if signed
        else "",
    )


def caption(
    attention: Attention, compared: MatrixComparison, *, difference: bool, hidden: str = "", shared_scale: bool = False
) -> str:
    """Return the lines under a panel's title: output error, and the reference if it is not softmax.

    A panel with weights also has the weight on special tokens that are ``hidden``, and the largest weight if all
    weights look equal on a ``shared_scale``.
    """
    if not math.isfinite(compared.passport.row_sum_max):
        return _("Some weights are not finite. Use smaller queries and keys.")
    lines = [
        _("reference") if attention.word == REFERENCE else _("output error {output:,.0%}", output=compared.output_error)
    ]
    if attention.variant.reference is not None:
        lines.append(_("reference {reference}", reference=reference_name(attention)))
    if hidden and not difference and compared.left_out > 0:
        lines.append(_("{share:.0%} of the weight is not drawn", share=compared.left_out))
    largest = float(np.nanmax(np.abs(compared.weights)))
    if shared_scale and not difference and largest < min(SMALL_WEIGHT, EVEN_RATIO / compared.weights.shape[-1]):
        lines.append(_("weights up to {largest}", largest=percent(largest)))
    return "\n".join(lines)


def details(attention: Attention, compared: MatrixComparison, *, hidden: str) -> str:
    """Return the tooltip of a panel's line: errors with their tokens, entropy, and row sums other than one.

    Args:
        attention: the variant.
        compared: its numbers.
        hidden: the special tokens that the matrix leaves out, as `joined_tokens` returns them; only the output error
            includes them.
    """
    metrics = compared.passport
    if not math.isfinite(metrics.row_sum_max):
        return ""
    parts = [_("Entropy {entropy:.2f} nats", entropy=metrics.entropy)]
    if attention.word != REFERENCE:
        parts += [
            _(
                "output error {output:,.0%} · matrix error {matrix:,.0%}",
                output=compared.output_error,
                matrix=metrics.relative_error,
            ),
            _("reference {reference}", reference=reference_name(attention)),
        ]
    if not rows_sum_to_one(metrics.row_sum_min, metrics.row_sum_max):
        parts.append(_("rows sum to {sums}", sums=span(metrics.row_sum_min, metrics.row_sum_max, ".3g")))
    if metrics.negative_mass > NEGATIVE_TOLERANCE:
        parts.append(
            _("negative weights make up {share:.1%} of the sum of absolute weights", share=metrics.negative_mass)
        )
    text = " · ".join(parts)
    return paragraph(end_sentence(text), excluded_note(hidden)) if hidden else text


def joined_tokens(tokens: Sequence[str]) -> str:
    """Return different special tokens in a list; empty for none."""
    if not tokens:
        return ""
    different = dict.fromkeys(tokens)
    return _n(
        "the special token {tokens}", "the special tokens {tokens}", n=len(different), tokens=enumeration(different)
    )


def excluded_note(hidden: str) -> str:
    """Return which numbers on the page leave out the hidden special tokens; empty if none are hidden."""
    if not hidden:
        return ""
    return _(
        "All numbers here except output errors and row sums are computed without {tokens}; the remaining weights are "
        "rescaled.",
        tokens=hidden,
    )


def spread_sentence(matrices: Mapping[Attention, MatrixComparison], *, causal: bool) -> str:
    """Return over how many keys each variant spreads a query's weights, the fewest first.

    Only the fewest and the most are stated if there are more than ``MAX_SPREADS``. Empty for a single key, and if no
    weights are finite.
    """
    finite = sorted(
        (round(each.passport.perplexity), _(REFERENCE) if a.key == REFERENCE else _(a.title), each.weights.shape[-1])
        for a, each in matrices.items()
        if math.isfinite(each.passport.row_sum_max) and each.weights.shape[-1] > 1
    )
    if not finite:
        return ""
    (n, name, total), *others = finite if len(finite) <= MAX_SPREADS else [finite[0], finite[-1]]
    # Under a causal mask, each query has its own number of keys.
    first = (
        _n("{n} key in {name}", "{n} keys in {name}", n=n, name=name)
        if causal
        else _("{n} of {total} keys in {name}", n=n, total=total, name=name)
    )
    spreads = enumeration([first, *(_("{n} in {name}", n=n, name=name) for n, name, _total in others)])
    return _("**A query spreads its weights over about {spreads} (effective keys).**", spreads=spreads)


def sign_note(matrices: Mapping[Attention, MatrixComparison], *, difference: bool) -> str:
    """Return the meaning of orange (and of blue for differences).

    Empty if the text below the board explains all negative weights.
    """
    if difference:
        references = {reference_name(attention) for attention in matrices if attention.word != REFERENCE}
        reference = references.pop() if len(references) == 1 else _("the reference")
        return _("Blue: more weight than {reference} gives. Orange: less weight.", reference=reference)
    if any(
        (compared.weights < -ROUNDING_ERROR).any() and not negative_weights(attention, compared)
        for attention, compared in matrices.items()
    ):
        return _("Orange: negative weights, which subtract values from the output.")
    return ""


def scope_note(hidden: str, *, all_heads: bool) -> str:
    """Return which heads the numbers include, and which tokens the matrices on the board leave out.

    Args:
        hidden: the special tokens that the matrices leave out, as `joined_tokens` returns them.
        all_heads: whether the matrices are averages over all heads.
    """
    return paragraph(
        _(
            "The output error and the masked weight include all heads. All other numbers describe the average of the "
            "heads' matrices."
        )
        if all_heads
        else "",
        _("Not drawn: {tokens}.", tokens=hidden) if hidden else "",
    )


def largest_weights(heaviest: Sequence[KeyWeight], tokens: Sequence[str]) -> str:
    """Return the keys with the largest weights of a query, the largest first; ``tokens`` are all keys."""
    if not heaviest:
        return _("no key has a weight of {least:.1%} or more", least=MIN_SHOWN_WEIGHT)
    if heaviest[0].weight < min(SMALL_WEIGHT, EVEN_RATIO / len(tokens)):
        return _("no key stands out (largest weight {weight:.0%})", weight=heaviest[0].weight)
    return _("top keys: {keys}", keys=_key_list(heaviest, tokens, ".0%"))


def largest_changes(
    losses: Sequence[KeyWeight], gains: Sequence[KeyWeight], tokens: Sequence[str], reference: str
) -> str:
    """Return the keys whose weight for a query decreased or increased most in a variant, compared with a reference."""
    if not (losses or gains):
        return _(
            "every weight is within {least:.1%} of its value in {against}", least=MIN_SHOWN_WEIGHT, against=reference
        )
    words = _("largest changes: {keys}", keys=_key_list([*losses, *gains], tokens, "+.0%"))
    return (
        words if reference == _(REFERENCE) else _("{words} (compared with {against})", against=reference, words=words)
    )


def bars_title(row: int, token: str, *, drawn: int, total: int, difference: bool, has_negative: bool) -> str:
    """Return the title of the bars of one query, how many keys are left out, and what orange bars mean.

    Args:
        row: index of the query.
        token: its label.
        drawn: number of keys with bars, those with the largest values in any variant.
        total: number of keys.
        difference: whether the bars are differences of weights.
        has_negative: whether a value is negative.
    """
    fields = {"row": row, "token": quote(token), "drawn": drawn, "total": total}
    title = (
        _("Differences of the weights of query {row} {token} from the reference", **fields)
        if difference
        else _("Weights of query {row} {token}", **fields)
    )
    left_out = (
        _("{drawn} of {total} keys: those with the largest differences", **fields)
        if difference
        else _("{drawn} of {total} keys: those with the largest weights", **fields)
    )
    orange = _("orange: less weight") if difference else _("orange: negative weights")
    notes = [left_out] * (drawn < total) + [orange] * has_negative
    return " · ".join([f"**{title}**", *(f":small[{note}]" for note in notes)])


def _key_list(shares: Sequence[KeyWeight], tokens: Sequence[str], form: str) -> str:
    """Return keys with their weights."""
    return clauses(f"{quote(tokens[each.key])} {formatted(each.weight, form)}" for each in shares)


def head_description(scores: HeadScores) -> str:
    """Return a head's position and all its scores, in words."""
    text = enumeration(
        f"{_(column.label)} {format_readable(getattr(scores, name), 2)}"
        for name, column in HeadScores.columns().items()
    )
    return _("layer {layer}, head {head}: {scores}", layer=scores.layer, head=scores.head, scores=text)


def head_findings(scores: Sequence[HeadScores], first: str) -> str:
    """Return which heads attend most to the previous and to the ``first`` token; empty without two defined scores."""
    previous, sink = (ranked(scores, name)[0] for name in ("previous", "sink"))
    if len(scores) < 2 or math.isnan(previous.previous) or math.isnan(sink.sink):
        return ""
    fields = {
        "layer": previous.layer,
        "head": previous.head,
        "previous": previous.previous,
        "other_layer": sink.layer,
        "other_head": sink.head,
        "sink": sink.sink,
        "first": quote(first),
    }
    if (previous.layer, previous.head) == (sink.layer, sink.head):
        return _(
            "**Layer {layer}, head {head}** attends most both to the previous token (weight {previous:.0%}) and to "
            "{first} (weight {sink:.0%}).",
            **fields,
        )
    return _(
        "**Layer {layer}, head {head}** attends most to the previous token (weight {previous:.0%}), and "
        "**layer {other_layer}, head {other_head}** to {first} (weight {sink:.0%}).",
        **fields,
    )


def top_head(ranking: Sequence[HeadScores], score_name: str, first_token: str) -> str:
    """Return which head has the highest rank by a score, or why the score ranks no head."""
    first, score = ranking[0], HeadScores.columns()[score_name].label
    value = getattr(first, score_name)
    if math.isnan(value) and score_name == "induction":
        return _(
            "Induction cannot be measured, because no token repeats with another token in between. In the preset "
            "“Repeated sequence”, every word occurs twice."
        )
    if math.isnan(value):
        return _("The score “{score}” needs at least two tokens.", score=_(score))
    is_weight = score_name in ("induction", "previous", "sink")
    values = {
        "layer": first.layer,
        "head": first.head,
        "value": percent(value) if is_weight else format_readable(value, 2),
        "first": quote(first_token),
    }
    sentences = {
        "induction": _(
            "**Layer {layer}, head {head}** ranks first: on average, a repeated token gives {value} of its "
            "weight to the tokens that followed its earlier occurrences.",
            **values,
        ),
        "previous": _(
            "**Layer {layer}, head {head}** ranks first: on average, a query gives {value} of its weight to "
            "the previous token.",
            **values,
        ),
        "sink": _(
            "**Layer {layer}, head {head}** ranks first: on average, a query gives {value} of its weight to {first}.",
            **values,
        ),
        "entropy": _(
            "**Layer {layer}, head {head}** has the lowest entropy: {value} nats, averaged over queries.", **values
        ),
        "distance": _(
            "**Layer {layer}, head {head}** has the shortest mean distance between query and key: {value} tokens.",
            **values,
        ),
    }
    return sentences[score_name]
