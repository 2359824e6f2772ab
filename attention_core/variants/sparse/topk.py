"""Top-k attention: each token keeps only its k strongest connections."""

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from attention_core.algorithms.blockwise import Rows, blockwise_attention, largest_block, pairs
from attention_core.algorithms.exact import exact_attention
from attention_core.algorithms.masked import causal_mask, masked_softmax, scores, widened
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


@dataclass(frozen=True, kw_only=True)
class TopKParams(Params):
    """Settings of top-k attention."""

    k: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Connections each token keeps: those with the largest scores, and what ties with the last of them.",
        budget=True,
    )


GROUPED = 8
"""Keys of which only the largest logit is looked at first."""


def kth_largest(logits: Tensor, k: int) -> Tensor:
    """The k-th largest of each row, ``[..., 1]``, or its least where a row is shorter.

    The k groups with the largest logits hold it: a larger logit stands in a group whose largest is larger, too.
    """
    keys = logits.shape[-1]
    width = keys // GROUPED
    if width >= 2 * k:
        groups, rest = logits.split([width * GROUPED, keys % GROUPED], -1)
        groups = groups.unflatten(-1, (GROUPED, width))
        best = groups.amax(-2, keepdim=True).topk(k, sorted=False).indices.expand(*groups.shape[:-1], k)
        logits = torch.cat([groups.gather(-1, best).flatten(-2), rest], -1)
    return logits.topk(min(k, keys), sorted=False).values.amin(-1, keepdim=True)


def kept(logits: Tensor, p: TopKParams) -> Tensor:
    """Which visible logits are no smaller than the k-th largest of their row; ties with it stay."""
    # A row that sees fewer than k keys has minus infinity for its k-th and keeps them all.
    return (logits >= kth_largest(logits, p.k)) & (logits > -math.inf)


def pattern(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """The pairs that are kept, ``bool [..., n, n]``."""
    # Rounded to half precision, many scores would tie with the k-th.
    logits = scores(widened(q), widened(k))
    return kept(logits.masked_fill(~causal_mask(q.shape[-2], q.device), -math.inf) if causal else logits, p)


def primitives(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> dict[str, Tensor]:
    """Every pair is there because its score is among the largest."""
    return {"kept": pattern(q, k, p, causal=causal)}


def weights(q: Tensor, k: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """Softmax restricted to the kept pairs, ``[..., n, n]``."""
    return masked_softmax(scores(q, k), pattern(q, k, p, causal=causal))


def weigh(q: Tensor, k: Tensor, rows: Rows, p: TopKParams) -> Tensor:
    """The same for some queries and the keys they may see, ``[..., rows, keys]``."""
    logits = rows.hide(scores(q, k), -math.inf)
    return logits.masked_fill_(logits.detach() < kth_largest(logits.detach(), p.k), -math.inf).softmax(-1)


def attend(q: Tensor, k: Tensor, v: Tensor, p: TopKParams, *, causal: bool) -> Tensor:
    """One block of queries after the other: O(n² d) time, O(n d) memory."""
    if p.k >= q.shape[-2]:
        return exact_attention(q, k, v, causal=causal)
    return blockwise_attention(partial(weigh, p=p), q, k, v, causal=causal)


def cost(n: int, d: int, p: TopKParams, *, causal: bool) -> Cost:
    """Two products for every pair computed; the output and what one block of scores becomes on its way."""
    if p.k >= n:
        return Cost(multiply_adds=2 * n * n * d, peak_elements=n * (d + 1))
    return Cost(multiply_adds=2 * d * pairs(n, causal=causal), peak_elements=n * d + 2 * largest_block(n))


VARIANT = Variant(
    key="topk",
    title="Top-k",
    family="sparse",
    summary="Each token keeps only its strongest connections, however far away they are.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in T_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"T_i = \text{the } k \text{ largest of } q_i^\top k_1, \dots, q_i^\top k_n",
    complexity="n² d",
    params=TopKParams,
    weights=weights,
    attend=attend,
    cost=cost,
    pattern=pattern,
    primitives=primitives,
    pairs="n k",
    approximates="softmax",
    note="It saves no time: every score is computed before the strongest are kept.",
    source=Paper("Explicit Sparse Transformer", 2019, "https://arxiv.org/abs/1912.11637"),
    special_cases=(SpecialCase("softmax", {"k": TOKENS}),),
)
