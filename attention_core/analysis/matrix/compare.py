"""Comparison of a variant's attention matrix with its reference, usually softmax, on one input's q, k and v."""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.approximation import relative_error, wrong_mass
from attention_core.metrics.passport import Passport, Ranks, passport, row_sums
from attention_core.ops.softmax.masked import causal_mask


class MatrixComparison(CompactRepr):
    """The matrix of one variant on one record, compared with its reference.

    Attributes:
        weights: attention matrix, ``float32 [n, m]``; NaN for pairs that are not allowed.
        difference: the matrix minus its reference (softmax for nearly all), ``float32 [n, m]``; NaN for hidden pairs.
        passport: metrics of the matrix, compared with the reference. Row sums include keys that are not shown.
        output_error: ``‖A v − S v‖ / ‖S v‖`` against the reference's output, over the selected heads.
        uniform_error: the same error for uniform attention, the mean of v, as a baseline.
        misplaced: share of a row's mass on wrong keys (total variation from the reference's row), averaged over all
            tokens and the selected heads.
        misplaced_special: how much less weight the variant gives to each special token than the reference does,
            averaged like ``misplaced``. If all rows sum to one, it is a part of ``misplaced``. Empty if the keys are
            those of another sequence.
        left_out: share of the shown rows' absolute weight on keys that are not shown, over the selected heads.
    """

    weights: np.ndarray
    difference: np.ndarray
    passport: Passport
    output_error: float
    uniform_error: float
    misplaced: float
    misplaced_special: Mapping[str, float]
    left_out: float


def compare(
    qkv: QKV, attention: Attention, *, head: int | None, causal: bool, special: bool = True
) -> MatrixComparison:
    """Compute one variant's matrix and its metrics.

    Args:
        qkv: queries, keys and values. Its keys may be those of another sequence.
        attention: the variant with its settings; it gets all heads, as in the model.
        head: index of the head; None for the average of the heads' matrices.
        causal: whether future keys are hidden.
        special: whether tokens that the tokenizer added are shown; if not, rows are rescaled to keep their absolute
            sum.
    """
    if qkv.crosses:
        attention.check_cross(causal)
    qkv.check_head(head)
    if head is not None and not attention.variant.couples_heads:  # each head can be computed alone
        qkv, head = qkv.of_head(head), 0
    selected = shown_tokens(qkv, special=special)
    selected_keys = torch.ones(qkv.m, dtype=torch.bool) if qkv.crosses else selected
    head_slice = slice(None) if head is None else slice(head, head + 1)
    weights = attention.weights(qkv.q, qkv.k, causal=causal)[head_slice]
    reference = attention.reference(qkv.q, qkv.k, causal=causal)[head_slice]
    allowed = allowed_pairs(qkv, attention, causal=causal)[head_slice].any(0)
    past_pairs = causal_mask(qkv.n) if causal else torch.ones_like(allowed)
    v = qkv.v[head_slice]
    reference_output = reference @ v
    uniform_weights = past_pairs / past_pairs.sum(-1, keepdim=True)

    shown_weights, shown_reference, shown_allowed, shown_past = (
        select_tokens(weights.mean(0), selected),
        select_tokens(reference.mean(0), selected),
        allowed[selected][:, selected_keys],
        past_pairs[selected][:, selected_keys],
    )
    sums = row_sums(weights.mean(0)[selected])
    return MatrixComparison(
        weights=shown_weights.masked_fill(~shown_allowed, torch.nan).numpy(),
        difference=(shown_weights - shown_reference).masked_fill(~shown_past, torch.nan).numpy(),
        passport=dataclasses.replace(
            passport(shown_weights, shown_reference, causal=causal),
            row_sum_min=float(sums.min()),
            row_sum_max=float(sums.max()),
        ),
        output_error=output_error(weights @ attention.values(qkv.v)[head_slice], reference_output),
        uniform_error=output_error(uniform_weights @ v, reference_output),
        misplaced=float(wrong_mass(weights, reference).mean()),
        misplaced_special={} if qkv.crosses else special_sums(qkv, (reference - weights).clamp_min(0).mean((0, 1))),
        left_out=float(weights[:, selected][..., ~selected_keys].abs().sum() / weights[:, selected].abs().sum()),
    )


def special_sums(qkv: QKV, weights: Tensor) -> dict[str, float]:
    """Sum the weights ``[n]`` of special tokens that have the same text, such as [SEP]; return the sums by text."""
    sums: dict[str, float] = {}
    for token, is_special, weight in zip(qkv.tokens, qkv.special, weights.tolist(), strict=True):
        if is_special:
            sums[token] = sums.get(token, 0.0) + weight
    return sums


def ranks(comparison: MatrixComparison) -> Ranks:
    """Compute the ranks of a compared matrix; NaN if an allowed pair has a weight that is NaN."""
    # NaN marks pairs that are not allowed, and counts as zero here. But if a row sum is NaN, the weight of an allowed
    # pair is NaN as well. NaN then stays in the matrix, so that the ranks are NaN.
    has_nan = math.isnan(comparison.passport.row_sum_max)
    return Ranks.of(torch.tensor(comparison.weights if has_nan else np.nan_to_num(comparison.weights)))


def allowed_pairs(qkv: QKV, attention: Attention, *, causal: bool) -> Tensor:
    """Return the pairs that a variant allows on this record, ``bool [H, n, m]``, by its mask or its pattern."""
    variant, n, m = attention.variant, qkv.n, qkv.m
    if variant.pattern is not None:
        return variant.pattern(qkv.q, qkv.k, attention.params, causal=causal).expand(qkv.heads, n, m)
    mask = attention.mask(n, causal=causal)
    if mask is None:
        mask = causal_mask(n) if causal else torch.ones(n, m, dtype=torch.bool)
    return mask.expand(qkv.heads, n, m)


def shown_tokens(qkv: QKV, *, special: bool) -> Tensor:
    """Return which tokens are shown, ``bool [n]``: all, or those not added by the tokenizer unless it added all."""
    selected = torch.tensor([special or not is_special for is_special in qkv.special])
    return selected if selected.any() else ~selected


def select_tokens(weights: Tensor, selected: Tensor) -> Tensor:
    """Return the matrix without some tokens' rows and columns, ``[..., n', n']``.

    The other weights of each row are rescaled, so that the sum of their absolute values does not change.

    Args:
        weights: ``[..., n, n]``.
        selected: the tokens to keep, ``bool [n]``.
    """
    if selected.all():
        return weights
    # Neighbouring tokens are copied together as a slice. Selecting single columns takes ten times as long.
    zero = torch.zeros(1, dtype=torch.int32)
    edges = torch.diff(selected.int(), prepend=zero, append=zero)
    runs = edges.nonzero().view(-1, 2).tolist()
    rows = torch.cat([weights[..., first:last, :] for first, last in runs], -2)
    columns = torch.cat([rows[..., first:last] for first, last in runs], -1)
    remaining = columns.abs().sum(-1, keepdim=True)
    total = remaining + rows[..., ~selected].abs().sum(-1, keepdim=True)
    return columns * torch.where(remaining > 0, total / remaining.clamp_min(torch.finfo(columns.dtype).tiny), 1.0)


def output_error(output: Tensor, reference: Tensor) -> float:
    """Compute the relative error of the outputs ``[H, n, d_v]`` of all heads together."""
    return float(relative_error(output.flatten(0, -2), reference.flatten(0, -2)))
