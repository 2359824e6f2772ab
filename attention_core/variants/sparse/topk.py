"""Top-k attention: each query attends only to the k keys with the largest logits."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.softmax.blockwise import (
    RowBlock,
    block_size,
    blockwise_attention,
    largest_block,
    n_pairs,
    row_blocks,
)
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, causal_mask, masked_softmax, scores
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class TopKParams(Params):
    """Settings of top-k attention."""

    k: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Number k of keys per query. If several keys have the same logit as the k-th, all of them are included.",
        budget=True,
    )


GROUPING_RATIO = 16
"""Smallest ratio of keys to selected keys at which ``largest`` first selects groups of keys."""
FEW, LONG = 4, 256
"""Smallest ratio of keys to selected keys, and smallest number of keys, at which ``gathers_values`` is true."""


def largest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest entries of each row, unordered, and their positions, ``[..., k]`` each.

    A row with fewer entries is returned whole. Long rows are cut into groups: the k largest entries lie in the k groups
    with the largest maxima, since each entry is at most the maximum of its group.
    """
    keys = logits.shape[-1]
    if keys < GROUPING_RATIO * k:
        top = logits.topk(min(k, keys), sorted=False)
        return top.values, top.indices
    # Step 1 selects the k groups with the largest maxima, and step 2 the k largest keys in these groups. The work
    # is least if the number of groups about equals the number of keys in k groups.
    group_size = math.isqrt(keys // k)
    n_groups = keys // group_size
    n_grouped = group_size * n_groups
    groups = logits[..., :n_grouped].unflatten(-1, (group_size, n_groups))
    best_groups = groups.amax(-2).topk(k, sorted=False).indices
    positions = torch.cat([best_groups + start for start in range(0, n_grouped, n_groups)], -1)
    if n_grouped < keys:
        rest = torch.arange(n_grouped, keys, device=logits.device).expand(*logits.shape[:-1], -1)
        positions = torch.cat([positions, rest], -1)
    top = logits.gather(-1, positions).topk(k, sorted=False)
    return top.values, positions.gather(-1, top.indices)


def candidates(keys: int, k: int) -> int:
    """Return the number of keys that ``largest`` gathers from groups to select k of them; k without groups."""
    if keys < GROUPING_RATIO * k:
        return k
    group_size = math.isqrt(keys // k)
    return group_size * k + keys % group_size


def kth_largest(logits: Tensor, k: int) -> Tensor:
    """Return the k-th largest entry of each row, ``[..., 1]``, or the smallest of a row with fewer entries."""
    return largest(logits, k)[0].amin(-1, keepdim=True)


def selected(logits: Tensor, p: TopKParams) -> Tensor:
    """Return a mask of the visible logits that are at least the k-th largest of their row, including ties."""
    # In a row with fewer than k visible keys the k-th logit is minus infinity, so that all visible keys are marked.
    return (logits >= kth_largest(logits, p.k)) & (logits > -math.inf)


def pattern(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """Return the selected pairs, ``bool [..., n, n]``."""
    # The logits are computed in float32. In half precision, many of them would be rounded to the k-th largest logit.
    logits = scores(at_least_float32(q), at_least_float32(k))
    return selected(logits.masked_fill(~causal_mask(q.shape[-2], q.device), -math.inf) if causal else logits, p)


def primitives(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> dict[str, Tensor]:
    """Return ``{"kept": mask}``, where the mask allows the pairs whose logit is among the largest of its row."""
    return {"kept": pattern(q, k, p, causal=causal)}


def weights(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """Compute softmax over the k largest logits of each row and those equal to the k-th, ``[..., n, n]``."""
    logits = scores(q, k)
    masked = logits.masked_fill(~causal_mask(q.shape[-2], q.device), -math.inf) if causal else logits
    kth = masked.topk(min(p.k, k.shape[-2])).values[..., -1:]  # the k-th largest logit of each row, [..., n, 1]
    return masked_softmax(logits, (masked >= kth) & (masked > -math.inf))


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock, p: TopKParams) -> Tensor:
    """Compute the weights of one block of queries, ``[..., rows.size, rows.key_count]``."""
    logits = rows.fill_future(scores(q, k), -math.inf)
    return logits.masked_fill_(logits.detach() < kth_largest(logits.detach(), p.k), -math.inf).softmax(-1)


def gathers_values(keys: int, p: TopKParams) -> bool:
    """Return whether, for this many keys, gathering the selected values is faster than multiplying by all values."""
    return keys >= max(FEW * p.k, LONG)


def _row_outputs(q: Tensor, k: Tensor, v: Tensor, rows: RowBlock, p: TopKParams) -> Tensor:
    """Return the outputs of one block of queries, ``[..., rows.size, d_v]``.

    Only selected values are read if this is faster and no other logit equals the k-th largest.
    """
    if not gathers_values(rows.key_count, p):
        return _row_weights(q, k, rows, p) @ v
    # Select the k + 1 largest logits, then drop the smallest of them. If the k-th and the (k + 1)-th logit are equal,
    # other keys may have the same logit too. The slower form attends to all of these keys.
    logits, positions = largest(rows.fill_future(q @ k.mT, -math.inf), p.k + 1)
    next_largest = logits.amin(-1, keepdim=True)
    is_excluded = logits <= next_largest
    has_tie = (is_excluded.sum(-1, keepdim=True) > 1) & (next_largest > -math.inf)
    if not has_tie.is_meta and has_tie.any():  # meta tensors have no values to compare
        return _row_weights(q, k, rows, p) @ v
    weights = logits.masked_fill_(is_excluded, -math.inf).mul_(q.shape[-1] ** -0.5).softmax(-1)
    leading, (keys, d_v) = q.shape[:-1], v.shape[-2:]
    heads = torch.arange(0, math.prod(leading[:-1]) * keys, keys, device=q.device).view(*leading[:-1], 1, 1)
    positions = (positions + heads).flatten(0, -2)
    out = F.embedding_bag(positions, v.reshape(-1, d_v), mode="sum", per_sample_weights=weights.flatten(0, -2))
    return out.view(*leading, d_v)


def attend(q: Tensor, k: Tensor, v: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    if p.k >= k.shape[-2]:
        return exact_attention(q, k, v, causal=causal)
    rule, row_outputs = partial(_row_weights, p=p), partial(_row_outputs, p=p)
    return blockwise_attention(rule, q, k, v, causal=causal, row_outputs=row_outputs)


def cost(n: int, d: int, p: TopKParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products with all k and with the selected v; memory for the output and the logits of a block."""
    m = keys or n
    if p.k >= m:
        return Cost(multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys), peak_elements=n * (d + 1))
    blocks = row_blocks(n, causal=causal, keys=keys)
    products = sum(rows.size * (p.k + 1 if gathers_values(rows.key_count, p) else rows.key_count) for rows in blocks)
    # Memory of a row in addition to its scores, in units of one number. While values are gathered, each selected key
    # takes 5 units: its weight, and its int64 position (2 units) twice. Otherwise, either the row's softmax or the
    # selection takes the most memory. The softmax takes one unit for each key. The selection takes 3 units for each
    # selected key: a weight and an int64 position.
    extra_per_row = 5 * candidates(m, p.k + 1) if gathers_values(m, p) else max(m, 3 * p.k)
    return Cost(
        multiply_adds=d * (n_pairs(n, causal=causal, keys=keys) + products),
        peak_elements=n * d + largest_block(n, keys=keys) + block_size(n) * extra_per_row,
    )


VARIANT = Variant(
    __name__,
    title="Top-k",
    summary="Each query attends only to the k keys with the largest logits.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in T_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"T_i = \text{the } k \text{ largest of } q_i^\top k_1, \dots, q_i^\top k_n",
    complexity="n² d",
    params=TopKParams,
    pairs="n k",
    approximates="softmax",
    note="Top-k attention saves no time, because all logits must be computed before the largest can be selected.",
    source=Paper(
        "Explicit Sparse Transformer: Concentrated Attention Through Explicit Selection",
        2019,
        "https://arxiv.org/abs/1912.11637",
    ),
    special_cases=(SpecialCase("softmax", {"k": TOKENS}),),
)
