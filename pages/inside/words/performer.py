"""Sentences and names in Performer's story, and the formula of the expected value of its estimate."""

import numpy as np

from app.figures.lines.spread import Spread
from app.words.i18n import _, paragraph
from app.words.labels import setting_name
from attention_core.formatting import number

POSITIVE = ("positive", "hyperbolic")
"""Kinds with positive features, whose estimates are rarely far too large and often far too small."""
FAR_TOO_SMALL = 0.5
"""A median estimate below this share of the true value counts as far too small."""
NEAR_ALL = 0.8
"""A larger relative error means that the estimate misses nearly all of the true value."""
NEAR_ONE = (0.95, 2.0)
"""Relative errors between these values count as near 1, the error of an estimate that is zero everywhere."""


def length_name(row_norms: str, *, chosen: bool) -> str:
    """Return the legend name for the setting ``row_norms``: the lengths of the directions, and whether it is chosen."""
    name = _("random") if row_norms == "chi" else _("all √d")
    return _("{name} (chosen)", name=name) if chosen else name


def directions_sentence(d: int, across: float | None, free: float | None) -> str:
    """Return the sentence about the overlap of orthogonal and of independent directions.

    Args:
        d: the size of a group, in which directions can be orthogonal.
        across: the mean absolute cosine of directions of different groups; None if all are in one group.
        free: the mean absolute cosine of independent directions; None for one direction.
    """
    if free is None:
        return _("There is only one direction, so there are no two directions to compare.")
    if across is None:
        return _(
            "In {d} dimensions, up to {d} directions can be orthogonal. Independent directions overlap: their mean "
            "absolute cosine is {free:.2f}.",
            d=d,
            free=free,
        )
    return _(
        "Only directions of the same group of {d} are orthogonal. Directions of different groups overlap like "
        "independent ones: their mean absolute cosine is {across:.2f} (independent: {free:.2f}).",
        d=d,
        across=across,
        free=free,
    )


def feature_captions(kind: str) -> tuple[str, str]:
    """Return two captions, which say how the drawn features of queries and of keys are scaled.

    Scaling does not change the attention matrix: a factor per query cancels when its row is divided by the row's sum,
    and a factor per feature cancels if the same feature of the keys is divided by it.

    Args:
        kind: the setting ``kind``, such as "positive".
    """
    if kind in POSITIVE:
        return (
            _("each column multiplied by φ(k)'s largest value, then each row divided by its largest value"),
            _("each column divided by its largest value"),
        )
    common = _("all features multiplied by the same factor")
    if kind == "trig":
        return _("each query's features scaled to the same length"), common
    return common, common


def estimate_sentence(near: float, middle: float) -> str:
    """Return the sentence about the accuracy of the estimates with one random draw of the directions.

    Args:
        near: the share of estimates within a factor of two of the true value.
        middle: the median ratio of estimate to true value.
    """
    return _(
        "Because the features are random, each estimate is noisy: {near:.0%} of the estimates are within a factor of "
        "two of the true value. For the median query–key pair, the estimate is {middle}× the true value.",
        near=near,
        middle=number(middle),
    )


def bias_sentence(kind: str, row_norms: str, middle: float) -> str:
    """Return the sentence that explains the median estimate by the bias and the spread of the estimator.

    Args:
        kind: the setting ``kind``, such as "positive".
        row_norms: the setting for the lengths of the directions: "fixed" or "chi" (random).
        middle: the median ratio of estimate to true value.
    """
    if row_norms == "fixed" and kind != "relu":
        return _("If all random vectors have the same length, the estimate is biased, even with many features.")
    if kind in POSITIVE and middle < FAR_TOO_SMALL:
        return _(
            "The mean over all random draws is the true value, but a few very large estimates dominate this mean. Most "
            "estimates are therefore too small."
        )
    return _("The mean over all random draws is the true value, so the estimator is unbiased.")


def mean_formula(kind: str, row_norms: str) -> str:
    """Return the formula of the expected value of the estimate, in LaTeX."""
    product = r"\mathbb{E}\left[\varphi(q)^\top\varphi(k)\right]"
    if kind == "relu":
        return (
            product + r" = \frac{\lVert q\rVert \lVert k\rVert}{2\pi\sqrt d} \left(\sin\theta + (\pi - \theta) "
            r"\cos\theta\right),\quad \theta = \angle(q, k)"
        )
    return product + (r" \approx " if row_norms == "fixed" else " = ") + r"e^{q\cdot k/\sqrt d}"


def is_near_one(errors: Spread) -> bool:
    """Return whether all errors are near 1, so that the estimates are no better than zero."""
    return all(NEAR_ONE[0] <= error <= NEAR_ONE[1] for error in errors.middle)


def error_headline(errors: Spread) -> str:
    """Return the sentence about whether the error falls with more directions; empty before it is known.

    Args:
        errors: the errors of positive features with orthogonal directions.
    """
    if len(errors.x) < 2:
        return ""
    if not all(np.isfinite(error) and error > 0 for error in errors.middle):
        return _("The error is zero or not defined.")
    values = {"a": errors.x[0], "b": errors.x[-1], "start": number(errors.middle[0]), "end": number(errors.middle[-1])}
    if is_near_one(errors):
        return _(
            "On this input, estimates with positive features are no better than zero everywhere: from {a:,.0f} to "
            "{b:,.0f} directions, their relative error stays near 1.",
            **values,
        )
    if values["start"] == values["end"]:
        return _(
            "On this input, more random directions do not help: from {a:,.0f} to {b:,.0f} directions, the error of "
            "positive features stays at {end}.",
            **values,
        )
    if errors.middle[-1] > errors.middle[0]:
        return _(
            "On this input, more random directions do not help: from {a:,.0f} to {b:,.0f} directions, the error of "
            "positive features goes from {start} to {end}.",
            **values,
        )
    return _(
        "From {a:,.0f} to {b:,.0f} random directions, the error of positive features falls from {start} to {end}.",
        **values,
    )


def fall_sentence(errors: dict[tuple[str, bool], Spread], *, divides: bool = False) -> str:
    """Return the sentences below the chart of the error against the number of directions.

    Args:
        errors: the errors by kind of feature, and whether the directions are orthogonal.
        divides: whether the logits are divided.
    """
    first = errors["positive", True]
    if len(first.x) < 2 or not errors["trig", False].x:
        return _("Drawing directions …")
    if not all(np.isfinite(error) and error > 0 for error in first.middle):
        return _(
            "The error is zero or not defined, because the similarities of this head are all equal or because "
            "they overflow."
        )
    ends = {form: each.middle[-1] for form, each in errors.items() if np.isfinite(each.middle[-1])}
    best = min(ends, key=ends.__getitem__)
    smallest = {"best": setting_name(best[0]), "least": number(ends[best])}
    start, end, is_flat = first.middle[0], first.middle[-1], is_near_one(first)
    rises = end > max(start, NEAR_ALL) and number(end) != number(start)
    return paragraph(
        _(
            "Rare, very large estimates carry the mean of positive features, and {b:,.0f} directions miss most of "
            "them.",
            b=first.x[-1],
        )
        if rises
        else "",
        _("Most estimates of the exponential are far too small.") if is_flat and not rises else "",
        _("Divide the logits by 20 above to see the error with small logits.")
        if (rises or is_flat) and not divides
        else "",
        _(
            "With the largest number of random directions, **{best}** features have the smallest error ({least}) of "
            "all kinds of features.",
            **smallest,
        )
        if best[1]
        else _(
            "With the largest number of random directions, **{best}** features with independent directions have the "
            "smallest error ({least}) of all kinds of features.",
            **smallest,
        ),
        _(
            "The error of **trig** features (sines and cosines) is {trig}.",
            trig=number(errors["trig", True].middle[-1], 3),
        )
        if best[0] != "trig"
        else "",
    )
