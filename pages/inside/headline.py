"""The finding at the top of the Inside page: what a variant saves, and how far its weights are from softmax's."""

from bisect import bisect_left

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import _, paragraph
from app.words.labels import reference_name
from attention_core.analysis.low_rank.factors import relative_error_of, uniform
from attention_core.formatting import percent
from pages.inside.story import Seen

LONGEST = 2**16
"""End of the search for the length from which a variant needs less work than softmax. Only formulas are evaluated."""
SAME = 0.005
"""Errors below this value would be printed as 0%."""


def headline(seen: Seen) -> str:
    """Return what the variant saves, how far its weights are from its reference, and its summary, as Markdown."""
    error, baseline = (relative_error_of(each, seen.reference) for each in (seen.weights, uniform(seen.visible)))
    return paragraph(
        difference(_saving(seen), reference_name(seen.attention), error, baseline), _(seen.attention.variant.summary)
    )


def _saving(seen: Seen) -> tuple[str, float]:
    """Return what the variant needs instead of softmax, as a clause, and its share of what softmax needs."""
    variant, (heads, n, d) = seen.attention.variant, seen.qkv.k.shape
    if "left" in seen.parts and "provenance" not in seen.parts:  # a product of factors that all depend on the input
        factors = [seen.parts[name] for name in ("left", "inverse", "right") if name in seen.parts]
        return factor_numbers(seen.parts["left"].shape[1], sum(factor.size for factor in factors), n * n)
    if variant.family == "cache" and variant.cache is not None:
        full = heads * (d + seen.qkv.v.shape[-1])
        held = variant.cache(heads, d, seen.qkv.v.shape[-1], seen.attention.params)
        return cached_numbers(n, held.per_token * n + held.fixed, full * n)
    return multiply_adds(n, work(seen, n), cheaper_from(seen))


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


def factor_numbers(m: int, own: int, full: int) -> tuple[str, float]:
    """Return the clause about the numbers in the factors of m landmarks, and their share of the full matrix."""
    need = _(
        "With {m} landmarks, the factors hold {own:,} numbers instead of softmax's {full:,}", m=m, own=own, full=full
    )
    return need, own / full


def cached_numbers(n: int, own: int, full: int) -> tuple[str, float]:
    """Return the clause about the numbers in the cache of n tokens, and their share of all keys and values."""
    need = _("For {n} tokens, the cache holds {own:,} numbers instead of {full:,}", n=n, own=own, full=full)
    return need, own / full


def multiply_adds(n: int, share: float, cheaper: int | None) -> tuple[str, float]:
    """Return the clause about the multiply-adds of a variant on n tokens, and their share of softmax's.

    Args:
        n: number of tokens.
        share: their share of softmax's.
        cheaper: the smallest number of tokens on which the variant needs fewer than softmax; None if it never does.
    """
    values = {"n": n, "share": percent(share), "cheaper": cheaper}
    if percent(share) == "100%":
        return _("On {n} tokens, this variant needs as many multiply-adds as softmax", **values), 1.0
    if share < 1 or cheaper is None:
        return _("On {n} tokens, this variant needs {share} of softmax's multiply-adds", **values), share
    need = _(
        "On {n} tokens, this variant needs {share} of softmax's multiply-adds (fewer than softmax from {cheaper:,} "
        "tokens on)",
        **values,
    )
    return need, share


def difference(saving: tuple[str, float], reference: str, error: float, baseline: float) -> str:
    """Return the finding: what a variant saves, and how far its weights are from the reference.

    Args:
        saving: what the variant needs, as a clause, and its share of what softmax needs.
        reference: name of the matrix that the error is relative to.
        error: the error of the variant's matrix.
        baseline: the error of equal weights for all visible keys.
    """
    need, share = saving
    if error < SAME:
        return _(
            "**{need}, and the weights differ from {reference}'s by less than {same:.1%}.**",
            need=need,
            reference=reference,
            same=SAME,
        )
    equal = (
        _("equal weights for all keys: {baseline}", baseline=percent(baseline))
        if error <= baseline or percent(error) == percent(baseline)
        else _("equal weights for all keys are closer: {baseline}", baseline=percent(baseline))
    )
    values = {"need": need, "reference": reference, "error": percent(error), "equal": equal}
    if share < 1:
        return _("**{need}, but the weights differ from {reference}'s by {error}** (matrix error; {equal}).", **values)
    return _("**{need}, and the weights differ from {reference}'s by {error}** (matrix error; {equal}).", **values)
