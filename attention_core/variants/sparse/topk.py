"""Top-k attention: each query attends only to the k keys with the largest logits."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.softmax.blockwise import Rows, block_size, blockwise_attention, largest_block, pairs, row_blocks
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


GROUPED = 16
"""Keys per selected key from which ``largest`` searches groups of keys first."""
FEW, LONG = 4, 256
"""Keys per selected key, and keys in total, from which ``mix`` gathers the selected values one by one."""


def largest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest entries of each row, unordered, and their positions, ``[..., k]`` each.

    A row with fewer entries is returned whole. Long rows are cut into groups: the k largest entries lie in the k groups
    with the largest maxima, since each entry is at most the maximum of its group.
    """
    keys = logits.shape[-1]
    if keys < GROUPED * k:
        found = logits.topk(min(k, keys), sorted=False)
        return found.values, found.indices
    # ``each`` is the size of a group, ``width`` the number of groups. The work is smallest if there are about as many
    # groups as keys in the k selected groups.
    each = math.isqrt(keys // k)
    width = keys // each
    inside, whole = logits[..., : each * width].unflatten(-1, (each, width)), range(0, each * width, width)
    best = inside.amax(-2).topk(k, sorted=False).indices
    places = torch.cat([best + first for first in whole], -1)
    if each * width < keys:
        rest = torch.arange(each * width, keys, device=logits.device).expand(*logits.shape[:-1], -1)
        places = torch.cat([places, rest], -1)
    found = logits.gather(-1, places).topk(k, sorted=False)
    return found.values, places.gather(-1, found.indices)


def candidates(keys: int, k: int) -> int:
    """Return the number of keys among which ``largest`` finally selects k."""
    if keys < GROUPED * k:
        return k
    each = math.isqrt(keys // k)
    return each * k + keys % each


def kth_largest(logits: Tensor, k: int) -> Tensor:
    """Return the k-th largest entry of each row, ``[..., 1]``, or the smallest of a row with fewer entries."""
    return largest(logits, k)[0].amin(-1, keepdim=True)


def selected(logits: Tensor, p: TopKParams) -> Tensor:
    """Mark the visible logits that are at least the k-th largest of their row; logits equal to the k-th count."""
    # In a row with fewer than k visible keys the k-th logit is minus infinity, so that all visible keys are marked.
    return (logits >= kth_largest(logits, p.k)) & (logits > -math.inf)


def pattern(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """Return the selected pairs, ``bool [..., n, n]``."""
    # In float32, because many logits would equal the k-th if they were rounded to half precision.
    logits = scores(at_least_float32(q), at_least_float32(k))
    return selected(logits.masked_fill(~causal_mask(q.shape[-2], q.device), -math.inf) if causal else logits, p)


def primitives(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the pattern by the name of its only rule: a pair is allowed if its logit is among the largest."""
    return {"kept": pattern(q, k, p, causal=causal)}


def weights(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """Compute softmax over the k largest logits of each row and those equal to the k-th, ``[..., n, n]``."""
    logits = scores(q, k)
    seen = logits.masked_fill(~causal_mask(q.shape[-2], q.device), -math.inf) if causal else logits
    kth = seen.topk(min(p.k, k.shape[-2])).values[..., -1:]  # the k-th largest logit of each row, [..., n, 1]
    return masked_softmax(logits, (seen >= kth) & (seen > -math.inf))


def weigh(q: Tensor, k: Tensor, rows: Rows, p: TopKParams) -> Tensor:
    """Compute the weights of some queries on their visible keys, ``[..., rows, keys]``."""
    logits = rows.hide(scores(q, k), -math.inf)
    return logits.masked_fill_(logits.detach() < kth_largest(logits.detach(), p.k), -math.inf).softmax(-1)


def one_by_one(keys: int, p: TopKParams) -> bool:
    """Return whether gathering the selected values one by one is faster with this many keys."""
    return keys >= max(FEW * p.k, LONG)


def mix(q: Tensor, k: Tensor, v: Tensor, rows: Rows, p: TopKParams) -> Tensor:
    """Multiply these rows' weights by v, ``[..., rows, d_v]``, by the selected values only where that is faster."""
    if not one_by_one(rows.keys, p):
        return weigh(q, k, rows, p) @ v
    # One logit more than k is selected. If the smallest of them occurs twice, keys tie with the k-th: all are selected.
    logits, places = largest(rows.hide(q @ k.mT, -math.inf), p.k + 1)
    next_largest = logits.amin(-1, keepdim=True)
    dropped = logits <= next_largest
    tied = (dropped.sum(-1, keepdim=True) > 1) & (next_largest > -math.inf)
    if not tied.is_meta and tied.any():  # meta tensors have no values
        return weigh(q, k, rows, p) @ v
    weights = logits.masked_fill_(dropped, -math.inf).mul_(q.shape[-1] ** -0.5).softmax(-1)
    lead, (keys, d_v) = q.shape[:-1], v.shape[-2:]
    heads = torch.arange(0, math.prod(lead[:-1]) * keys, keys, device=q.device).view(*lead[:-1], 1, 1)
    places = (places + heads).flatten(0, -2)
    out = F.embedding_bag(places, v.reshape(-1, d_v), mode="sum", per_sample_weights=weights.flatten(0, -2))
    return out.view(*lead, d_v)


def attend(q: Tensor, k: Tensor, v: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    if p.k >= k.shape[-2]:
        return exact_attention(q, k, v, causal=causal)
    return blockwise_attention(partial(weigh, p=p), q, k, v, causal=causal, mix=partial(mix, p=p))


def cost(n: int, d: int, p: TopKParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products over all and over the selected pairs, memory for the output and a block's logits."""
    m = keys or n
    if p.k >= m:
        return Cost(multiply_adds=2 * d * pairs(n, causal=causal, keys=keys), peak_elements=n * (d + 1))
    blocks = row_blocks(n, causal=causal, keys=keys)
    mixed = sum(rows.size * (p.k + 1 if one_by_one(rows.keys, p) else rows.keys) for rows in blocks)
    # Numbers in memory in addition to a block's scores: their softmax, or two copies of the int64 positions of the
    # selected keys while their values are gathered.
    extra = 5 * candidates(m, p.k + 1) if one_by_one(m, p) else max(m, 3 * p.k)
    return Cost(
        multiply_adds=d * (pairs(n, causal=causal, keys=keys) + mixed),
        peak_elements=n * d + largest_block(n, keys=keys) + block_size(n) * extra,
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
