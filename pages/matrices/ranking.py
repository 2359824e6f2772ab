"""Sentences that rank the variants on the Matrices page by their output error."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.state.session import REFERENCE
from app.words.finding import Finding
from app.words.i18n import _, _n, enumeration, paragraph
from app.words.labels import every_key

MAX_CLOSE_POINTS = 5.0
"""Percentage points up to which the error of equal weights is called close, or hardly larger."""
CLOSE_ERROR_SHARE = 0.5
"""Share of the error of equal weights up to which the smallest error counts as small, as on the Error page."""


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


def extremes(errors: Sequence[VariantError]) -> tuple[list[str], list[str]]:
    """Return the names of the variants with the smallest and with the largest error, with the precision shown."""
    rounded = {each.name: in_percent(each.error) for each in errors if math.isfinite(each.error)}
    ends = (choose(rounded.values(), default=math.nan) for choose in (min, max))
    smallest, largest = ([name for name, error in rounded.items() if error == end] for end in ends)
    return smallest, largest


def ranking(
    reference: str,
    errors: Sequence[VariantError],
    *,
    causal: bool = False,
    described: Collection[str] = (),
    combined: Mapping[str, str] | None = None,
    loss: str = "",
) -> Finding:
    """Return which variants have the smallest and the largest output error, in the same words in any order.

    Variants whose error is not finite are not ranked but named.

    Args:
        reference: the reference's name.
        errors: at least one, all compared with this reference.
        causal: whether future keys are hidden, so that the baseline averages the values up to each query.
        described: variants whose error, and that of equal weights, another sentence says.
        combined: sentences that a variant has the largest error and why, by its name; used below the figure.
        loss: the weight that the closest variant masks, as `masked_weight` returns it.
    """
    ranked = sorted((each for each in errors if math.isfinite(each.error)), key=lambda each: each.name)
    invalid = not_finite(sorted(each.name for each in errors if not math.isfinite(each.error)))
    if ranked and not math.isfinite(errors[0].baseline):
        text = _("The output of {against} contains values that are not finite.", against=reference)
        return Finding(paragraph(text, invalid))
    result = (
        _rank(reference, ranked, causal=causal, described=described, combined=combined or {}, loss=loss)
        if ranked
        else Finding("")
    )
    separate = _(
        "These variants are compared with {against} instead of softmax, so they are ranked separately.",
        against=reference,
    )
    return Finding(
        paragraph(result.text, invalid), paragraph(result.explanation, "" if reference == _(REFERENCE) else separate)
    )


def not_finite(names: Sequence[str]) -> str:
    """Return which variants have numbers that are not finite, and what helps; empty for none."""
    if not names:
        return ""
    return _(
        "No error can be computed for **{names}**, because some values are not finite. Use smaller queries and keys.",
        names=enumeration(names),
    )


def _rank(
    reference: str,
    errors: Sequence[VariantError],
    *,
    causal: bool,
    described: Collection[str],
    combined: Mapping[str, str],
    loss: str,
) -> Finding:
    """Return the ranking of variants with finite errors, and the finite error of equal weights as its explanation."""
    (smallest, largest), baseline = extremes(errors), errors[0].baseline
    fields: dict[str, Any] = {
        "against": reference,
        "zero": baseline,
        "keys": every_key(causal=causal),
        "error": min(rival.error for rival in errors),
        "most": max(rival.error for rival in errors),
    }
    margin = in_percent(baseline) - in_percent(fields["most"])
    if smallest == largest:
        return Finding(
            _("**All variants have an output error of {error:,.0%} compared with {against}.**", **fields)
            if len(errors) > 1
            else _(
                "**{name} has an output error of {error:,.0%} compared with {against}.**", name=smallest[0], **fields
            ),
            _baseline(margin, **fields) if margin or in_percent(baseline) else "",
        )
    farthest = _farthest(largest, **fields)
    reason = combined.get(largest[0], "") if len(largest) == 1 else ""
    gain = in_percent(baseline) - in_percent(fields["error"])
    if gain <= MAX_CLOSE_POINTS:
        return Finding(paragraph(_hardly_better(gain, **fields), _closest(smallest, **fields)), reason or farthest)
    is_close = in_percent(fields["error"]) <= CLOSE_ERROR_SHARE * in_percent(baseline)
    closest = _closest(smallest, **fields) if is_close else _closest_but_far(smallest, **fields)
    near = margin <= MAX_CLOSE_POINTS
    compared = _near_baseline(largest, margin, **fields) if near else _baseline(margin, **fields)
    if set(largest) <= set(described):
        compared = ""
    if loss and not is_close:
        closest = _(
            "**{name} has the smallest output error compared with {against} (still {error:,.0%}). It {loss}.**",
            name=smallest[0],
            loss=loss,
            **fields,
        )
        return Finding(closest, reason or paragraph(farthest.replace("**", ""), compared))
    return Finding(paragraph(closest, farthest), compared)


def _hardly_better(gain: float, **fields: object) -> str:
    """Return that even the smallest error is hardly, or not, smaller than that of equal weights, or that this is zero.

    Args:
        gain: the error of equal weights minus the smallest error, at most ``MAX_CLOSE_POINTS`` percentage points.
        fields: values of the message.
    """
    values: dict[str, Any] = fields
    if in_percent(values["zero"]) == 0:
        return _("**Equal weights on {keys} have the same output as {against} (0% output error).**", **values)
    if gain > 0:
        return _("**No variant is much better than equal weights on {keys} ({zero:.0%} output error).**", **values)
    return _("**No variant is better than equal weights on {keys} ({zero:.0%} output error).**", **values)


def _closest(names: Sequence[str], **fields: object) -> str:
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    return _n(
        "**{names} has the smallest output error compared with {against} ({error:,.0%}).**",
        "**{names} have the smallest output error compared with {against} ({error:,.0%}).**",
        **values,
    )


def _closest_but_far(names: Sequence[str], **fields: object) -> str:
    """Return which variants have the smallest error, and that it is not small."""
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    return _n(
        "**{names} has the smallest output error compared with {against}, but it is still {error:,.0%}.**",
        "**{names} have the smallest output error compared with {against}, but it is still {error:,.0%}.**",
        **values,
    )


def _farthest(names: Sequence[str], **fields: object) -> str:
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    return _n(
        "**{names} has the largest output error compared with {against} ({most:,.0%}).**",
        "**{names} have the largest output error compared with {against} ({most:,.0%}).**",
        **values,
    )


def _near_baseline(names: Sequence[str], margin: float, **fields: object) -> str:
    """Return the sentence that the variants with the largest error are hardly or not better than equal weights.

    Args:
        names: the variants.
        margin: the error of equal weights minus the variants' error, at most ``MAX_CLOSE_POINTS`` percentage
            points.
        fields: values of the message.
    """
    values: dict[str, Any] = {"names": enumeration(names), **fields}
    if margin > 0:
        return _(
            "The output error of **{names}** ({most:,.0%}) is hardly smaller than that of equal weights on {keys} "
            "({zero:.0%}).",
            **values,
        )
    if margin == 0:
        return _(
            "The output error of **{names}** ({most:,.0%}) is no smaller than that of equal weights on {keys} "
            "({zero:.0%}).",
            **values,
        )
    return _(
        "The output error of **{names}** ({most:,.0%}) is larger than that of equal weights on {keys} ({zero:.0%}).",
        **values,
    )


def _baseline(margin: float, **fields: object) -> str:
    """Return the error of equal weights, compared with the variants' largest; ``margin`` is in percentage points."""
    if margin < 0:
        return _("Equal weights on {keys} would have an output error of only {zero:.0%}.", **fields)
    if margin == 0:
        return _("Equal weights on {keys} would also have an output error of {zero:.0%}.", **fields)
    if margin <= MAX_CLOSE_POINTS:
        return _("The output error is hardly smaller than that of equal weights on {keys} ({zero:.0%}).", **fields)
    return _("Equal weights on {keys} would have an output error of {zero:.0%}.", **fields)


def in_percent(error: float) -> float:
    """Return an error with the precision shown, so that errors that read the same rank equally."""
    return float(f"{error:.0%}".rstrip("%"))
