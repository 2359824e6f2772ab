"""PoWER-BERT: keeps the tokens that receive the most attention, in all heads together, and drops the others.

As in the paper, the kept tokens (survivors) still attend to every token in this layer, including the eliminated ones.
The outputs of eliminated tokens are not computed, so their rows are zero. Later layers would receive only the
survivors. A token's significance is the attention that it receives from all tokens, summed over heads. Unlike this
module, the authors' code excludes a token's attention to itself and never eliminates the first token.
"""

import math

import torch
from torch import Tensor

from attention_core.ops.softmax.blockwise import STEP, head_blocks, largest_block
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import masked_softmax, scores, top_k_mask
from attention_core.variant import Cost, Intermediate, Paper, Params, SpecialCase, Variant, param


class PowerBertParams(Params):
    """Settings of PoWER-BERT."""

    keep: float = param(
        0.5,
        low=0.05,
        high=1.0,
        step=0.05,
        help="Share of the tokens that are kept for the next layer. The tokens that receive the most attention are "
        "kept.",
        budget=True,
    )


def survivor_count(n: int, p: PowerBertParams) -> int:
    """Return the number of survivors: ``keep * n``, rounded, at least one."""
    return max(1, math.floor(p.keep * n + 0.5))


@torch.no_grad()
def significance(q: Tensor, k: Tensor) -> Tensor:
    """Return the attention that each token receives, summed over queries and heads (axis -3), ``float64 [..., n]``.

    In float32 many small sums would be 0, and the position would decide which tokens are eliminated.
    """
    leading, n = q.shape[:-2], q.shape[-2]
    q, k = (x.reshape(-1, *x.shape[-2:]) for x in (q, k))
    received = torch.zeros(q.shape[:-1], dtype=torch.float64, device=q.device)
    for heads, _, rows in head_blocks(q, k, causal=False):
        received[heads] += scores(q[heads, rows.start : rows.stop].double(), k[heads].double()).softmax(-1).sum(-2)
    return received.reshape(*leading[:-1], -1, n).sum(-2)


def survivors(q: Tensor, k: Tensor, p: PowerBertParams) -> Tensor:
    """Return the survivors' positions, ascending, ``int64 [..., m]``, for all heads; on a tie the earlier survives."""
    ranked = significance(q, k).sort(dim=-1, descending=True, stable=True).indices
    return ranked[..., : survivor_count(q.shape[-2], p)].sort(-1).values


def pattern(q: Tensor, k: Tensor, p: PowerBertParams, *, causal: bool) -> Tensor:
    """Return the allowed pairs, ``bool [..., n, n]``: all pairs whose query survives."""
    index = survivors(q, k, p)
    survives = torch.zeros(*index.shape[:-1], q.shape[-2], dtype=torch.bool, device=q.device).scatter_(-1, index, True)
    return _expand_heads(survives, q).unsqueeze(-1).expand(*q.shape[:-1], q.shape[-2])


def primitives(q: Tensor, k: Tensor, p: PowerBertParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of the only rule by its name: a pair is allowed if its query survives."""
    return {"survivor": pattern(q, k, p, causal=causal)}


def _expand_heads(x: Tensor, q: Tensor) -> Tensor:
    """Return ``x``, ``[..., m]``, expanded to the H heads of ``q``, ``[..., H, m]``; unchanged if q has no heads."""
    return x if q.ndim == 2 else x.unsqueeze(-2).expand(*q.shape[:-2], x.shape[-1])


def weights(q: Tensor, k: Tensor, p: PowerBertParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q kᵀ / √d)`` with zero rows for the eliminated tokens, ``[..., n, n]``."""
    survives = pattern(q, k, p, causal=causal)  # [..., n, n]; all entries of a row are equal
    return masked_softmax(scores(q, k), survives)


def definition(q: Tensor, k: Tensor, v: Tensor, p: PowerBertParams, *, causal: bool) -> Tensor:
    """Compute softmax attention and set the outputs of the eliminated tokens to zero, ``[..., n, d_v]``."""
    full = scores(q, k).softmax(-1)  # [..., n, n]
    received = full.sum(-2)  # [..., n]
    if q.ndim > 2:
        received = received.sum(-2, keepdim=True)  # over heads, [..., 1, n]
    survives = top_k_mask(received, survivor_count(q.shape[-2], p))
    return full @ v * survives.unsqueeze(-1)


def attend(q: Tensor, k: Tensor, v: Tensor, p: PowerBertParams, *, causal: bool) -> Tensor:
    """Compute the significance in blocks of queries, then the survivors' rows: O(n² d) time, O(n d) memory."""
    rows = _expand_heads(survivors(q, k, p), q).unsqueeze(-1)
    out = exact_attention(q.gather(-2, rows.expand(*rows.shape[:-1], q.shape[-1])), k, v)
    return torch.zeros_like(v).scatter_(-2, rows.expand_as(out), out)


def cost(n: int, d: int, p: PowerBertParams, *, causal: bool, heads: int) -> Cost:
    """Return the cost: all logits for the significance (float64), then products of the survivors with k and v."""
    m = survivor_count(n, p)
    scored_heads = min(heads, max(1, STEP // largest_block(n)))  # number of heads that one step scores
    scoring = 2 * heads * n + scored_heads * (2 * n * d + 4 * largest_block(n))
    peak = max(scoring, heads * (n * d + m * (d + 3)))
    return Cost(multiply_adds=heads * (n * n * d + 2 * m * n * d), peak_elements=peak)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: PowerBertParams, *, causal: bool) -> dict[str, Tensor]:
    """Return ``significance``, ``[..., n]``, and ``survivors``, ``int64 [..., m]``, both without a head axis."""
    return {"significance": significance(q, k), "survivors": survivors(q, k, p)}


VARIANT = Variant(
    __name__,
    title="PoWER-BERT",
    summary="All queries attend to all keys, but only the tokens that receive the most attention are kept for the "
    "next layer.",
    formula=r"A_{ij} = \begin{cases} P_{ij} & s_i \text{ among the } \lceil \kappa n \rfloor \text{ largest} \\ "
    r"0 & \text{otherwise} \end{cases},\quad P = \operatorname{softmax}\left(\frac{Q K^\top}{\sqrt d}\right),\quad "
    r"s_j = \sum_{\text{heads}} \sum_i P_{ij}",
    complexity="n² d",
    params=PowerBertParams,
    cross_reason="a token that receives little attention as a key is dropped as a query, so queries and keys must be "
    "the same tokens.",
    pairs="κ n²",
    approximates="softmax",
    causal_reason="the attention that a token receives from later tokens decides whether it is kept.",
    intermediates=(
        Intermediate(
            name="significance",
            title="Attention received",
            symbol="s",
            formula=r"s_j = \sum_{\text{heads}} \sum_i P_{ij},\qquad P = "
            r"\operatorname{softmax}\left(\frac{QK^\top}{\sqrt d}\right)",
            mechanism="The attention that a token receives is the sum of the softmax weights that all queries of all "
            "heads give it. The tokens with the largest sums are kept.",
            rows="token",
        ),
    ),
    note="The rows of dropped tokens are zero. This saves no time in the layer itself, but later layers no longer "
    "process the dropped tokens.",
    couples_heads=True,
    source=Paper(
        "PoWER-BERT: Accelerating BERT Inference via Progressive Word-vector Elimination",
        2020,
        "https://arxiv.org/abs/2001.08950",
    ),
    special_cases=(SpecialCase("softmax", {"keep": 1.0}),),
)
