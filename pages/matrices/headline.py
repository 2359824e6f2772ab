"""The headline of the Matrices page: how far each variant's output is from its reference (usually softmax), and why."""

import math
from collections.abc import Mapping

from app.state.session import REFERENCE
from app.words.finding import Finding, Lines
from app.words.i18n import _, paragraph
from app.words.labels import every_key, main_tokens, reference_name, sentence_name
from attention_core.analysis.matrix.compare import MatrixComparison
from attention_core.attention import Attention
from attention_core.formatting import span
from attention_core.variant import Variant
from pages.matrices.ranking import MAX_CLOSE_POINTS, VariantError, extremes, in_percent, ranking

LINEAR, NYSTROM = "linear", "nystrom"
"""Variants with sentences of their own."""
MASKED_ROWS = ("power_bert",)
"""Variants that mask all keys of some queries, so their misplaced weight is not softmax's weight on masked keys."""
MIN_SUM_CHANGE = 0.5
"""Distance of a row sum from 1 beyond which the row sums are given as the reason for an error."""
MIN_FLATNESS_RATIO = 1.5
"""Ratio of the effective numbers of keys per row beyond which linear attention is called flat."""
VISIBLE_SHARE = 0.005
"""Share of negative weight up to which it is not explained: rounded, it is 0%, and its colour can hardly be seen."""


def findings(
    matrices: Mapping[Attention, MatrixComparison],
    *,
    causal: bool = False,
    difference: bool = False,
    can_add: bool = True,
) -> Lines:
    """Return how far the variants on screen are from their references (mostly softmax), and why.

    Args:
        matrices: the numbers of each variant.
        causal: whether future keys are hidden.
        difference: whether the page shows differences of weights, so that orange does not mean a negative weight.
        can_add: whether a sentence may ask the visitor to add a variant, because no lesson is shown.
    """
    groups: dict[str, list[VariantError]] = {_(REFERENCE): []}
    for attention, compared in matrices.items():
        if attention.word != REFERENCE:
            errors = {"error": compared.output_error, "baseline": compared.uniform_error}
            error = VariantError(name=sentence_name(attention), **errors)
            groups.setdefault(reference_name(attention), []).append(error)
    if not any(groups.values()):
        text = _("Add a variant to compare it with softmax on the same queries, keys and values.")
        return [[Finding(text)]] if can_add else []
    closest, farthest = extremes(groups[_(REFERENCE)])
    causes = {
        name: error_cause(attention, matrices)
        for attention in matrices
        if (name := sentence_name(attention)) in (*closest, *farthest)
    }
    described = {
        name: compared
        for attention, compared in matrices.items()
        if attention.key == LINEAR
        and causes.get(name := sentence_name(attention))
        and len(closest) == 1
        and [name] != closest
    }
    combined = {
        name: text
        for name, compared in described.items()
        if [name] == farthest and (text := farthest_because_flat(name, compared, causal=causal))
    }
    losses = [masked_weight(*each) for each in matrices.items() if sentence_name(each[0]) in closest]
    loss = losses[0] if len(losses) == 1 else ""
    results = [
        ranking(
            reference,
            errors,
            causal=causal,
            described=described,
            combined=combined,
            loss=loss * (reference == _(REFERENCE)),
        )
        for reference, errors in groups.items()
        if errors
    ]
    if loss and loss in results[0].text:
        del causes[closest[0]]
    for name, text in combined.items():
        if text in results[0].explanation:
            del causes[name]
    baselines = {name: near_equal_weights(compared, causal=causal) for name, compared in described.items()}
    reasons = paragraph(*(text for name, cause in causes.items() for text in (cause, baselines.get(name, ""))))
    negative = (negative_weights(*each, difference=difference) for each in matrices.items())
    return [*([each] for each in results), [Finding("", paragraph(reasons, *negative))]]


def error_cause(attention: Attention, matrices: Mapping[Attention, MatrixComparison]) -> str:
    """Return a sentence about the cause of a variant's error; empty if there is no error or its cause is not known.

    Args:
        attention: the variant.
        matrices: the comparison of each variant on screen with its reference.
    """
    subject = f"**{_(attention.title)}**"
    if attention.key == LINEAR:
        return flatness(matrices, subject)
    return lost_weight(attention, matrices[attention], subject)


def is_masked_softmax(variant: Variant) -> bool:
    """Return whether a variant is softmax over some keys of each query.

    Its misplaced weight is then the weight that softmax gives to the other keys.
    """
    has_mask = variant.mask is not None or variant.pattern is not None
    return has_mask and variant.approximates == REFERENCE and variant.key not in MASKED_ROWS


def masked_weight(attention: Attention, compared: MatrixComparison) -> str:
    """Return the end of a sentence about the weight that a variant masks; empty if it masks none."""
    if not is_masked_softmax(attention.variant) or in_percent(compared.misplaced) <= 0:
        return ""
    special = compared.misplaced_special
    if sum(special.values()) <= compared.misplaced / 2:
        return _("masks {share:.0%} of softmax's weight", share=compared.misplaced)
    tokens = main_tokens(special)
    if compared.left_out > 0:
        tokens = _("{tokens} (not drawn)", tokens=tokens)
    return _("masks {share:.0%} of softmax's weight, mostly on {tokens}", share=compared.misplaced, tokens=tokens)


def lost_weight(attention: Attention, compared: MatrixComparison, subject: str) -> str:
    """Return why a variant has an error: masked weight, landmarks, an approximate inverse, or row sums other than one.

    Empty if it has no error or another reason.
    """
    if loss := masked_weight(attention, compared):
        return _("{subject} {loss}.", subject=subject, loss=loss)
    budget = attention.variant.budget
    if attention.key == NYSTROM and budget and getattr(attention.params, budget.name) < len(compared.weights):
        return _("{subject} replaces groups of tokens by their means, the landmarks.", subject=subject)
    if in_percent(compared.output_error) == 0:
        return ""
    if attention.key == NYSTROM:
        return _("{subject} only approximates an inverse matrix.", subject=subject)
    low, high = compared.passport.row_sum_min, compared.passport.row_sum_max
    if max(abs(low - 1), abs(high - 1)) < MIN_SUM_CHANGE:
        return ""
    return _(
        "The rows of {subject} sum to {sums}, not to 1, so its outputs differ in size from those of {reference}.",
        subject=subject,
        sums=span(low, high, ".3g"),
        reference=reference_name(attention),
    )


def negative_weights(attention: Attention, compared: MatrixComparison, *, difference: bool = False) -> str:
    """Return why weights of Nyström attention are negative; empty for other variants and if hardly any are."""
    if attention.key != NYSTROM or not compared.passport.negative_mass > VISIBLE_SHARE:
        return ""
    fields = {"name": _(attention.title), "share": compared.passport.negative_mass}
    if difference:
        return _(
            "**{name}** multiplies by an inverse matrix, which can have negative entries, so some of its weights are "
            "negative. By absolute value, they make up {share:.0%} of its weight.",
            **fields,
        )
    return _(
        "**{name}** multiplies by an inverse matrix, which can have negative entries, so some weights are negative "
        "(orange). By absolute value, they make up {share:.0%} of the weight shown.",
        **fields,
    )


def flatness(matrices: Mapping[Attention, MatrixComparison], subject: str) -> str:
    """Return why the rows of linear attention are flat; empty if they are not flatter than those of softmax."""
    keys = {attention.key: compared.passport.perplexity for attention, compared in matrices.items()}
    if not keys.get(LINEAR, math.nan) > MIN_FLATNESS_RATIO * keys.get(REFERENCE, math.nan):
        return ""
    return _("{subject} has no exponential, so it weights keys more evenly than softmax.", subject=subject)


def farthest_because_flat(name: str, compared: MatrixComparison, *, causal: bool) -> str:
    """Return that linear attention has the largest output error because its rows are flat.

    The text is empty if its error is much larger than that of equal weights, because flat rows then do not explain it.
    """
    fields = {
        "name": name,
        "error": compared.output_error,
        "zero": compared.uniform_error,
        "keys": every_key(causal=causal),
    }
    margin = in_percent(compared.uniform_error) - in_percent(compared.output_error)
    if margin < -MAX_CLOSE_POINTS:
        return ""
    if 0 < margin <= MAX_CLOSE_POINTS:
        return _(
            "**{name}** has the largest output error ({error:,.0%}, almost that of equal weights, {zero:.0%}), "
            "because it has no exponential and weights keys more evenly.",
            **fields,
        )
    return _(
        "**{name}** has the largest output error ({error:,.0%}; with equal weights on {keys}: {zero:.0%}), "
        "because it has no exponential and weights keys more evenly.",
        **fields,
    )


def near_equal_weights(compared: MatrixComparison, *, causal: bool) -> str:
    """Return the sentence about linear attention's output error, compared with the error of equal weights."""
    fields = {"error": compared.output_error, "zero": compared.uniform_error, "keys": every_key(causal=causal)}
    if abs(in_percent(compared.output_error) - in_percent(compared.uniform_error)) <= MAX_CLOSE_POINTS:
        return _("Its error is close to that of equal weights ({zero:.0%}).", **fields)
    return _("Its error is {error:,.0%} (with equal weights on {keys}: {zero:.0%}).", **fields)
