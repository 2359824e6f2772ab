"""The headline of the Matrices page: how far each matrix is from its reference, and why."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.state.session import REFERENCE
from app.words.i18n import _, _n, enumeration, paragraph
from app.words.labels import every_key, label, reference_name
from attention_core.analysis.matrix.compare import MatrixComparison
from attention_core.metrics.passport import NEGATIVE_TOLERANCE
from attention_core.variant import Attention

LINEAR, LOCAL, NYSTROM = "linear", "local", "nystrom"
"""Variants with sentences of their own."""
MASKED_SOFTMAX = ("atrous", "bigbird", "blocks", "longformer", "sink", "sparse", "topk", "vertical_slash")
"""Other variants that are softmax over some of the keys, so that their misplaced weight is that of the masked keys."""
MIN_FLATNESS_RATIO = 1.5
"""Ratio of the effective numbers of keys per row beyond which linear attention is called flat."""
MAX_SIMILAR_SHARE = 0.1
"""Share of a row's weight on other keys up to which a matrix is called similar to softmax's."""
MAX_CLOSE_POINTS = 5.0
"""Percentage points up to which the error of equal weights is called close, or hardly larger."""


@dataclass(frozen=True, kw_only=True)
class VariantError:
    """The output error of one variant, compared with a baseline.

    Attributes:
        name: name on screen.
        error: relative error of the variant's output against its reference.
        baseline: relative error of the plain mean of the values.
    """

    name: str
    error: float
    baseline: float


def headline(
    matrices: Mapping[Attention, MatrixComparison],
    *,
    causal: bool = False,
    hides_special: bool = False,
    difference: bool = False,
) -> str:
    """Return how far the variants on screen are from their references (mostly softmax), and why.

    Args:
        matrices: the numbers of each variant.
        causal: whether future keys are hidden.
        hides_special: whether the matrices leave out special tokens.
        difference: whether the page shows differences of weights, so that orange does not mean a negative weight.
    """
    groups: dict[str, list[VariantError]] = {_(REFERENCE): []}
    for attention, compared in matrices.items():
        if attention.word != REFERENCE:
            error = VariantError(name=label(attention), error=compared.output_error, baseline=compared.uniform_error)
            groups.setdefault(reference_name(attention), []).append(error)
    closest, farthest = _extremes(groups[_(REFERENCE)])
    best = closest[0] if len(closest) == 1 and closest != farthest else ""
    causes = {
        name: error_cause(attention, matrices, _("It") if name == best else f"**{_(attention.title)}**", hides_special)
        for attention in matrices
        if (name := label(attention)) in (*closest, *farthest)
    }
    cause = causes.pop(best, "")
    described = [
        (name, compared)
        for a, compared in matrices.items()
        if a.key == LINEAR and best and causes.get(name := label(a))
    ]
    causes |= {
        name: paragraph(causes[name], near_equal_weights(compared, causal=causal)) for name, compared in described
    }
    results = (
        ranking(
            reference,
            errors,
            causal=causal,
            cause=cause if reference == _(REFERENCE) else "",
            described=dict(described),
        )
        for reference, errors in groups.items()
        if errors
    )
    negative = (negative_weights(*each, difference=difference) for each in matrices.items())
    text = paragraph(*results, *causes.values(), *negative)
    return text or _("Add a variant to compare it with softmax on the same queries, keys and values.")


def _extremes(errors: Sequence[VariantError]) -> tuple[list[str], list[str]]:
    """Return the names of the variants with the smallest and with the largest error, with the precision shown."""
    rounded = {each.name: in_percent(each.error) for each in errors if math.isfinite(each.error)}
    ends = (choose(rounded.values(), default=math.nan) for choose in (min, max))
    smallest, largest = ([name for name, error in rounded.items() if error == end] for end in ends)
    return smallest, largest


def error_cause(
    attention: Attention, matrices: Mapping[Attention, MatrixComparison], subject: str, hides_special: bool = False
) -> str:
    """Return the reason for a variant's error; empty if it is not known or if nothing is lost.

    Args:
        attention: the variant.
        matrices: the numbers of all variants on screen.
        subject: the variant's name or a pronoun.
        hides_special: whether the matrices leave out special tokens.
    """
    if attention.key == LINEAR:
        return flatness(matrices, subject)
    return lost_weight(attention, matrices[attention], subject, hides_special)


def lost_weight(attention: Attention, compared: MatrixComparison, subject: str, hides_special: bool = False) -> str:
    """Return the reason for a mask's or for landmarks' error; empty for other variants and if nothing is lost."""
    if attention.key in (LOCAL, *MASKED_SOFTMAX) and in_percent(compared.misplaced) > 0:
        fields = {"subject": subject, "share": compared.misplaced}
        # ``passport`` covers only the tokens on screen. Without the special tokens, the mask hides at most this share.
        drawn = compared.passport.total_variation
        if hides_special and drawn < MAX_SIMILAR_SHARE and drawn < compared.misplaced / 2:
            return _("{subject} masks {share:.0%} of softmax's weight, mostly on special tokens.", **fields)
        return _("{subject} masks {share:.0%} of softmax's weight.", **fields)
    budget = attention.variant.budget
    if attention.key == NYSTROM and budget and getattr(attention.params, budget.name) < len(compared.weights):
        return _("{subject} replaces groups of tokens by their means, the landmarks.", subject=subject)
    return ""


def negative_weights(attention: Attention, compared: MatrixComparison, *, difference: bool = False) -> str:
    """Return why weights of Nyström attention are negative; empty for other variants and if hardly any are."""
    if attention.key != NYSTROM or not compared.passport.negative_mass > NEGATIVE_TOLERANCE:
        return ""
    fields = {"name": _(attention.title), "share": compared.passport.negative_mass}
    if difference:
        return _("**{name}** inverts a matrix, so {share:.0%} of its weight is negative.", **fields)
    return _("**{name}** inverts a matrix, so {share:.0%} of its weight is negative (orange).", **fields)


def flatness(matrices: Mapping[Attention, MatrixComparison], subject: str) -> str:
    """Return why the rows of linear attention are flat; empty if they are not flatter than those of softmax."""
    keys = {attention.key: compared.passport.perplexity for attention, compared in matrices.items()}
    if not keys.get(LINEAR, math.nan) > MIN_FLATNESS_RATIO * keys.get(REFERENCE, math.nan):
        return ""
    return _("{subject} has no exponential, so it weights keys more evenly.", subject=subject)


def near_equal_weights(compared: MatrixComparison, *, causal: bool) -> str:
    """Return the output error of linear attention, and whether it is close to that of equal weights."""
    fields = {"error": compared.output_error, "zero": compared.uniform_error, "keys": every_key(causal=causal)}
    if abs(in_percent(compared.output_error) - in_percent(compared.uniform_error)) <= MAX_CLOSE_POINTS:
        return _("Its error is close to that of equal weights ({zero:.0%}).", **fields)
    return _("Its error is {error:.0%} (with equal weights on {keys}: {zero:.0%}).", **fields)


def ranking(
    reference: str,
    errors: Sequence[VariantError],
    *,
    causal: bool = False,
    cause: str = "",
    described: Collection[str] = (),
) -> str:
    """Return which variants come closest to their reference and which are farthest, in the same words in any order.

    Variants whose error is not finite are not ranked but named.

    Args:
        reference: the reference's name.
        errors: at least one, all compared with this reference.
        causal: whether future keys are hidden, so that the baseline averages the values up to each query.
        cause: why the variant that comes closest has an error.
        described: variants whose error, and that of equal weights, another sentence says.
    """
    ranked = sorted((each for each in errors if math.isfinite(each.error)), key=lambda each: each.name)
    invalid = sorted(each.name for each in errors if not math.isfinite(each.error))
    baseline = errors[0].baseline
    if ranked and not math.isfinite(baseline):
        return paragraph(
            _("The output of {against} contains values that are not finite.", against=reference), not_finite(invalid)
        )
    text = _rank(reference, ranked, causal=causal, cause=cause, described=described) if ranked else ""
    if reference != _(REFERENCE):
        text = paragraph(
            text,
            _(
                "These variants are compared with {against} instead of softmax, so they are ranked separately.",
                against=reference,
            ),
        )
    return paragraph(text, not_finite(invalid))


def not_finite(names: Sequence[str]) -> str:
    """Return which variants have numbers that are not finite, and what helps; empty for none."""
    if not names:
        return ""
    return _(
        "No error can be computed for **{names}**, because some values are not finite. Use smaller queries and keys.",
        names=enumeration(names),
    )


def _rank(
    reference: str, errors: Sequence[VariantError], *, causal: bool, cause: str, described: Collection[str]
) -> str:
    """Return the ranking of variants with finite errors next to the finite error of equal weights, in bold."""
    (smallest, largest), baseline = _extremes(errors), errors[0].baseline
    fields: dict[str, Any] = {
        "against": reference,
        "zero": baseline,
        "keys": every_key(causal=causal),
        "error": min(rival.error for rival in errors),
        "most": max(rival.error for rival in errors),
    }
    margin = in_percent(baseline) - in_percent(fields["most"])
    if smallest == largest:
        return paragraph(
            _("**All variants have an output error of {error:.0%} compared with {against}.**", **fields)
            if len(errors) > 1
            else _(
                "**{name} has an output error of {error:.0%} compared with {against}.**", name=smallest[0], **fields
            ),
            _baseline(margin, **fields),
        )
    others = not set(largest) <= set(described)
    if in_percent(fields["error"]) >= in_percent(baseline):
        sentence = _("**No variant is better than equal weights on {keys} ({zero:.0%} output error).**", **fields)
        return paragraph(sentence, _closest(smallest, **fields), cause, _farthest(largest, **fields) if others else "")
    closest = paragraph(_closest(smallest, **fields), cause)
    if others and margin > MAX_CLOSE_POINTS:
        return paragraph(closest, _farthest(largest, **fields), _baseline(margin, **fields))
    return paragraph(closest, _near_baseline(largest, margin, **fields) if others else "")


def _closest(names: Sequence[str], **fields: object) -> str:
    """Return which variants have the smallest error."""
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    return _n(
        "**{names} is closest to {against} (output error: {error:.0%}).**",
        "**{names} are closest to {against} (output error: {error:.0%}).**",
        **values,
    )


def _farthest(names: Sequence[str], **fields: object) -> str:
    """Return which variants have the largest error."""
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    return _n(
        "**{names} is farthest from {against} (output error: {most:.0%}).**",
        "**{names} are farthest from {against} (output error: {most:.0%}).**",
        **values,
    )


def _near_baseline(names: Sequence[str], margin: float, **fields: object) -> str:
    """Return that the variants with the largest error are hardly better than equal weights, or not better.

    Args:
        names: the variants.
        margin: the error of equal weights minus theirs, at most ``MAX_CLOSE_POINTS`` percentage points.
        fields: values of the message.
    """
    values: dict[str, Any] = {"names": enumeration(names), **fields}
    if margin > 0:
        return _(
            "The output error of **{names}** ({most:.0%}) is hardly smaller than that of equal weights on {keys} "
            "({zero:.0%}).",
            **values,
        )
    if margin == 0:
        return _(
            "The output error of **{names}** ({most:.0%}) is no smaller than that of equal weights on {keys} "
            "({zero:.0%}).",
            **values,
        )
    return _(
        "The output error of **{names}** ({most:.0%}) is larger than that of equal weights on {keys} ({zero:.0%}).",
        **values,
    )


def _baseline(margin: float, **fields: object) -> str:
    """Return the error of equal weights, compared with the largest error of the variants.

    Args:
        margin: difference of the two errors in percentage points.
        fields: values of the message.
    """
    if margin < 0:
        return _("Equal weights on {keys} would have an output error of only {zero:.0%}.", **fields)
    if margin == 0:
        return _("Equal weights on {keys} would also have an output error of {zero:.0%}.", **fields)
    if margin <= MAX_CLOSE_POINTS:
        return _("This output error is hardly smaller than that of equal weights on {keys} ({zero:.0%}).", **fields)
    return _("Equal weights on {keys} would have an output error of {zero:.0%}.", **fields)


def in_percent(error: float) -> float:
    """Return an error with the precision shown, so that errors that read the same rank equally."""
    return float(f"{error:.0%}".rstrip("%"))
