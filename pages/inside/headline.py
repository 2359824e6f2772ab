"""The top of the Inside page: how a variant works, what it needs, and how far its weights are from softmax's."""

from bisect import bisect_left

import numpy as np

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import _, paragraph
from app.words.labels import reference_name
from attention_core.analysis.low_rank.factors import relative_error_of, uniform
from attention_core.formatting import number, percent
from pages.inside.story import Seen

LONGEST = 2**16
"""End of the search for the length from which a variant needs less work than softmax. Only formulas are evaluated."""
SAME = 0.005
"""Errors below this value would be printed as 0%."""

UNNORMALISED = 2
"""Factor by which the absolute weights of a row must sum to more or less than 1 to explain a large error."""


def headline(seen: Seen) -> str:
    """Return how the variant works, what it needs, and how far its weights are from its reference, as Markdown."""
    error, baseline = (relative_error_of(each, seen.reference) for each in (seen.weights, uniform(seen.visible)))
    total = float(np.median(np.abs(seen.weights).sum(-1)))
    measured = paragraph(_needs(seen), difference(reference_name(seen.attention), error, baseline, total))
    return f"**{_(seen.attention.variant.summary)}**  \n{measured}"


def _needs(seen: Seen) -> str:
    """Return the sentence about the numbers or the multiply-adds that the variant needs instead of softmax's."""
    variant, (heads, n, d) = seen.attention.variant, seen.qkv.k.shape
    if "left" in seen.parts and "provenance" not in seen.parts:  # a product of factors that all depend on the input
        factors = [seen.parts[name] for name in ("left", "inverse", "right") if name in seen.parts]
        return factor_numbers(seen.parts["left"].shape[1], sum(factor.size for factor in factors), n * n)
    if variant.family == "cache" and variant.cache is not None:
        full = heads * (d + seen.qkv.v.shape[-1])
        held = variant.cache(heads, d, seen.qkv.v.shape[-1], seen.attention.params)
        return cached_numbers(n, held.per_token * n + held.fixed, full * n)
    return multiply_adds(_(variant.title), n, work(seen, n), cheaper_from(seen))


def work(seen: Seen, n: int) -> float:
    """Return the multiply-adds of the variant on n tokens, divided by softmax's, if values are as long as keys."""
    heads, _n, d = seen.qkv.k.shape
    own, softmax = (
        each.cost(n, d, causal=seen.causal, heads=heads).multiply_adds for each in (seen.attention, ac.get(REFERENCE))
    )
    return own / softmax


def cheaper_from(seen: Seen) -> int | None:
    """Return the number of tokens from which on the variant needs less work than softmax, or None."""
    lengths = range(1, LONGEST + 1)
    first = bisect_left(lengths, True, key=lambda n: work(seen, n) < 1)
    return lengths[first] if first < LONGEST else None


def factor_numbers(m: int, own: int, full: int) -> str:
    """Return the sentence about the numbers in the factors of m landmarks, instead of those in the full matrix."""
    return _(
        "With {m} landmarks, the matrices to multiply have {own:,} entries (softmax: {full:,}).",
        m=m,
        own=own,
        full=full,
    )


def cached_numbers(n: int, own: int, full: int) -> str:
    """Return the sentence about the numbers in the cache of n tokens, instead of all keys and values."""
    return _(
        "For {n} tokens, the cache holds {own:,} numbers (all keys and values: {full:,}).", n=n, own=own, full=full
    )


def multiply_adds(name: str, n: int, share: float, cheaper: int | None) -> str:
    """Return the sentence about the multiply-adds of a variant on n tokens.

    Args:
        name: the variant's name.
        n: number of tokens.
        share: multiply-adds of the variant, divided by softmax's.
        cheaper: the smallest number of tokens on which the variant needs fewer than softmax; None if it never does.
    """
    values = {"name": name, "n": n, "share": percent(share), "cheaper": cheaper}
    if percent(share) == "100%":
        return _("At {n} tokens, {name} needs as many multiply-adds as softmax.", **values)
    if share < 1 or cheaper is None:
        return _("At {n} tokens, {name} needs {share} of softmax's multiply-adds.", **values)
    return _(
        "At {n} tokens, {name} needs {share} of softmax's multiply-adds; from {cheaper:,} tokens on, it needs fewer.",
        **values,
    )


def difference(reference: str, error: float, baseline: float, total: float) -> str:
    """Return the sentences about how far the variant's weights are from the reference.

    Args:
        reference: name of the matrix that the error is relative to.
        error: the error of the variant's matrix.
        baseline: the error of equal weights for all visible keys.
        total: sum of the absolute weights of the median row, which is 1 for softmax.
    """
    values = {"reference": reference, "error": percent(error), "equal": percent(baseline), "total": number(total)}
    if error < SAME:
        return _("The matrix error relative to {reference}'s matrix is less than {same:.1%}.", same=SAME, **values)
    if values["error"] == values["equal"] or error < baseline or 1 / UNNORMALISED < total < UNNORMALISED:
        return _("The matrix error relative to {reference}'s matrix is {error} (equal weights: {equal}).", **values)
    return _(
        "The matrix error relative to {reference}'s matrix is {error} (equal weights: {equal}). One reason is "
        "that the absolute weights of a row sum to {total} (median over rows) instead of 1.",
        **values,
    )
