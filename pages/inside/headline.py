"""Sentences of the Inside page: a summary of how a variant works, and sentences about its measured cost and error."""

import numpy as np

import attention_core as ac
from app.state.session import REFERENCE
from app.words.i18n import _, _n, paragraph
from app.words.labels import reference_name
from attention_core.analysis.low_rank.factors import relative_error_of, uniform_weights
from attention_core.experiments.generation import cheaper_from
from attention_core.formatting import number, percent
from pages.inside.story import HeadData

MIN_SHOWN_ERROR = 0.005
"""Errors below this value would be printed as 0%."""
HARDLY_BETTER = 0.95
"""An error of at least this share of the error of equal weights is hardly better."""

UNNORMALISED_RATIO = 2
"""A row sum (of absolute weights) larger than this, or smaller than its inverse, explains a large error."""


def headline(data: HeadData) -> str:
    """Return the summary of how the variant works, in bold as Markdown."""
    if data.attention.key == "blocks":  # Its summary says m; the sentence here has the number.
        others = -(-len(data.weights) // data.setting("block")) - 1
        return f"**{selection_sentence(data.setting('blocks'), others, causal=data.causal)}**"
    if data.attention.key == "linear":  # Its summary is correct only without a mask.
        return f"**{sum_sentence(causal=data.causal)}**"
    return f"**{_(data.attention.variant.summary)}**"


def sum_sentence(*, causal: bool) -> str:
    """Return the summary of linear attention; with ``causal``, a query reads no later tokens."""
    if causal:
        return _(
            "Each query reads one sum over the keys and values up to its own token, instead of each key separately."
        )
    return _("All queries read the same sum over all keys and values, instead of each key separately.")


def selection_sentence(count: int, others: int, *, causal: bool) -> str:
    """Return the summary of block selection.

    Args:
        count: number of blocks selected by score.
        others: number of blocks other than a query's own.
        causal: whether only earlier blocks can be selected.
    """
    if not min(count, others):
        return _("Each query attends only to its own block of keys.")
    if count >= others:
        return (
            _("Each query attends to its own block of keys and to all earlier blocks.")
            if causal
            else _("Each query attends to its own block of keys and to all other blocks.")
        )
    if causal:
        return _n(
            "Each query attends to its own block of keys and to the earlier block with the highest score.",
            "Each query attends to its own block of keys and to at most {n} earlier blocks, those with the highest "
            "scores.",
            n=count,
        )
    return _n(
        "Each query attends to its own block of keys and to the other block with the highest score.",
        "Each query attends to its own block of keys and to the {n} other blocks with the highest scores.",
        n=count,
    )


def error_of_matrix(data: HeadData) -> str:
    """Return the sentences about how far the variant's weights are from the reference."""
    error, baseline = (
        relative_error_of(each, data.reference) for each in (data.weights, uniform_weights(data.visible))
    )
    sums = np.abs(data.weights).sum(-1)
    total = float(np.median(sums[sums > 0])) if sums.any() else 0.0  # Rows without any weight would make it too small.
    return difference(reference_name(data.attention), error, baseline, total)


def needs(data: HeadData) -> str:
    """Return the sentence that compares the variant's stored numbers, or its multiply-adds, with softmax's."""
    variant, (heads, n, d) = data.attention.variant, data.qkv.k.shape
    if variant.family == "cache" and variant.cache is not None:
        full_numbers = heads * (d + data.qkv.v.shape[-1])
        cache_size = variant.cache(heads, d, data.qkv.v.shape[-1], data.attention.params)
        return cached_numbers(n, cache_size.per_token * n, cache_size.fixed, full_numbers * n)
    heads, _n, d = data.qkv.k.shape
    cheaper = cheaper_from(data.attention, heads, d, causal=data.causal)
    return multiply_adds(_(variant.title), n, work(data, n), cheaper)


def work(data: HeadData, n: int) -> float:
    """Return the multiply-adds of the variant on n tokens, divided by softmax's; values are as long as keys."""
    heads, _n, d = data.qkv.k.shape
    own, softmax = (
        each.cost(n, d, causal=data.causal, heads=heads).multiply_adds for each in (data.attention, ac.get(REFERENCE))
    )
    return own / softmax


def cached_numbers(n: int, of_tokens: int, fixed: int, full_numbers: int) -> str:
    """Return the sentence that compares the numbers in the cache of n tokens with those in all keys and values.

    Args:
        n: number of tokens.
        of_tokens: numbers stored for all n tokens; with ``fixed``, these are latents.
        fixed: numbers stored once; with ``of_tokens``, these are shared matrices.
        full_numbers: numbers in all keys and values.
    """
    if of_tokens and fixed:
        return _(
            "With n = {n}, the cache holds {latents:,} numbers in latents and {matrices:,} in shared matrices (all "
            "keys and values: {full:,}).",
            n=n,
            latents=of_tokens,
            matrices=fixed,
            full=full_numbers,
        )
    return _(
        "With n = {n}, the cache holds {own:,} numbers (all keys and values: {full:,}).",
        n=n,
        own=of_tokens + fixed,
        full=full_numbers,
    )


def multiply_adds(name: str, n: int, share: float, cheaper: int | None) -> str:
    """Return the sentence about the multiply-adds of a variant on n tokens.

    Args:
        name: the variant's name.
        n: number of tokens.
        share: multiply-adds of the variant, divided by softmax's.
        cheaper: the smallest number of tokens on which the variant needs fewer than softmax; None if it never does.
    """
    if round(share, 2) == 1:
        return _n(
            "At {n} token, {name} needs as many multiply-adds as softmax.",
            "At {n} tokens, {name} needs as many multiply-adds as softmax.",
            n=n,
            name=name,
        )
    text = _n(
        "At {n} token, {name} needs {share} of softmax's multiply-adds.",
        "At {n} tokens, {name} needs {share} of softmax's multiply-adds.",
        n=n,
        name=name,
        share=percent(share),
    )
    if share < 1 or cheaper is None:
        return text
    return paragraph(text, _("From {cheaper:,} tokens on, it needs fewer than softmax.", cheaper=cheaper))


def difference(reference: str, error: float, baseline: float, total: float) -> str:
    """Return the sentences about how far the variant's weights are from the reference.

    Args:
        reference: name of the matrix that the error is relative to.
        error: the error of the variant's matrix.
        baseline: the error of equal weights for all visible keys.
        total: median over the rows of the sum of absolute weights, which is 1 for softmax. Rows without weight are
            left out.
    """
    values = {"reference": reference, "error": percent(error), "equal": percent(baseline), "total": number(total)}
    if error < MIN_SHOWN_ERROR:
        return _(
            "The matrix error relative to {reference}'s matrix is less than {same:.1%}.", same=MIN_SHOWN_ERROR, **values
        )
    if HARDLY_BETTER * baseline <= error < baseline or values["error"] == values["equal"]:
        return _(
            "The weights are hardly better than equal weights: the matrix error relative to {reference}'s matrix is "
            "{error} (equal weights: {equal}).",
            **values,
        )
    if error <= baseline:
        return _("The matrix error relative to {reference}'s matrix is {error} (equal weights: {equal}).", **values)
    text = _(
        "The matrix is farther from {reference}'s matrix than equal weights are: the matrix error is {error} (equal "
        "weights: {equal}).",
        **values,
    )
    if 1 / UNNORMALISED_RATIO < total < UNNORMALISED_RATIO:
        return text
    return paragraph(
        text,
        _(
            "One reason is that the absolute weights of a row add up to {total} (median over rows) instead of 1.",
            **values,
        ),
    )
