"""Memory-compressed attention: every query attends to pooled keys, each of which represents a few neighbouring tokens.

It approximates softmax; at stride 1, every token is its own pool, and the result is softmax. The paper trains the
strided convolution that pools. Here, the window of the convolution is fixed, triangular or flat.

Without a causal mask, tokens are divided evenly: the sizes of pools differ by at most one. Max pooling applies to the
keys alone: values are mean-pooled, since the output would otherwise not be a matrix times v.

If causal, a query attends to the pools before its own pool, and to the single tokens of its own pool up to itself.
Hence no row is empty, and stride 1 gives causal softmax. Causal pools hold exactly ``stride`` tokens each, except for
the last, which no query attends to as a pool. If tokens were divided evenly, each new token could move the bounds of
earlier pools and change earlier outputs.
"""

import torch
from torch import Tensor

from attention_core.ops.low_rank.pooling import Run, Segments, pool, pooling_matrix, strided_segments
from attention_core.ops.pattern.parts import earlier_blocks_attention, own_block_attention
from attention_core.ops.pattern.pieces import block_pairs, residue_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, causal_mask, masked_softmax, positions, scores
from attention_core.ops.softmax.partial import merge_partial_softmax
from attention_core.variant import Cost, Paper, Params, SpecialCase, Trainable, Variant, param


class PooledParams(Params):
    """Settings of attention to pooled keys."""

    stride: int = param(
        4,
        low=1,
        high=256,
        scale="log",
        budget=True,
        help="Maximum number s of neighbouring tokens in a pool, which replaces them by one key and one value. "
        "Larger pools cost less but lose more detail. 1 gives softmax attention.",
    )
    pool: str = param(
        "mean",
        choices=("mean", "conv", "max"),
        help='How the keys of neighbouring tokens are combined into the key of a pool. "mean" takes their mean, and '
        '"conv" takes a mean with more weight in the middle. "max" takes the maximum of each component.',
    )


def _value_pooling(p: PooledParams) -> str:
    return "mean" if p.pool == "max" else p.pool


def _segments(n: int, p: PooledParams, *, causal: bool) -> Segments:
    """Return the pools. If causal, all but the last have ``stride`` tokens; else their sizes differ by at most one."""
    if not causal:
        return strided_segments(n, p.stride)
    full_pools, rest = divmod(n, p.stride)
    return tuple(run for run in (Run(full_pools, p.stride), Run(1, rest)) if run.number and run.size)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: PooledParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the tokens that each key covers, ``provenance = P [m, n]``, and the factors ``left @ right = weights``.

    If causal, rows for the single tokens follow the pools, ``[m + n, n]``.
    """
    n = q.shape[-2]
    segments = _segments(n, p, causal=causal)
    P = pooling_matrix(segments, q, _value_pooling(p), p.learned.get("window"))  # [m, n]
    keys, allowed = pool(k, segments, p.pool, p.learned.get("window")), None  # [..., m, d]
    if causal:
        block = torch.arange(n, device=q.device) // p.stride  # [n], the pool of each token
        earlier = torch.arange(len(P), device=q.device) < block[:, None]  # [n, m]
        own = (block == block[:, None]) & causal_mask(n, q.device)  # [n, n]
        allowed = torch.cat([earlier, own], -1)  # [n, m + n]
        keys, P = torch.cat([keys, k], -2), torch.cat([P, torch.eye(n, device=q.device, dtype=q.dtype)])
    return {"provenance": P, "left": masked_softmax(scores(q, keys), allowed), "right": P}


def weights(q: Tensor, k: Tensor, p: PooledParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q pool(k)ᵀ / √d) R``, ``[..., n, n]``; R pools values and, if causal, adds single tokens."""
    segments = _segments(k.shape[-2], p, causal=causal)
    keys = pool(k, segments, p.pool, p.learned.get("window"))  # [..., m, d]
    R = pooling_matrix(segments, q, _value_pooling(p), p.learned.get("window"))  # [m, n]
    if not causal:
        return scores(q, keys).softmax(-1) @ R
    i, j = positions(q.shape[-2], q.device)
    earlier = torch.arange(len(R), device=q.device) < i // p.stride  # [n, m]
    own = (i // p.stride == j // p.stride) & (j <= i)  # [n, n]
    identity = torch.eye(q.shape[-2], dtype=R.dtype, device=R.device)
    keys, R = torch.cat([keys, k], -2), torch.cat([R, identity])  # [..., m + n, d], [m + n, n]
    return masked_softmax(scores(q, keys), torch.cat([earlier, own], -1)) @ R


def attend(q: Tensor, k: Tensor, v: Tensor, p: PooledParams, *, causal: bool) -> Tensor:
    """Compute full attention to n/s pooled keys, for stride s: O(n² d / s) time, or O(n (n / s + s) d) if causal."""
    segments = _segments(k.shape[-2], p, causal=causal)
    dtype, s = v.dtype, p.stride
    q, k, v = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    keys, values = (
        pool(k, segments, p.pool, p.learned.get("window")),
        pool(v, segments, _value_pooling(p), p.learned.get("window")),
    )
    if not causal:
        return exact_attention(q, keys, values).to(dtype)
    out, lse = own_block_attention(q, k, v, block=s, causal=True)
    if q.shape[-2] > s:
        own = out[..., s:, :], lse[..., s:, :]
        later = merge_partial_softmax([own, earlier_blocks_attention(q, keys, values, block=s)])
        out = torch.cat([out[..., :s, :], later], -2)
    return out.to(dtype)


def cost(n: int, d: int, p: PooledParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: two n x n/s x d products; if causal, products with earlier pools and within the own pool."""
    m, later_queries = -(-(keys or n) // p.stride), max(0, n - p.stride)
    # The pooling "conv" weights the tokens of a pool by a window, which copies them. The copies for all pools of
    # one size exist at the same time.
    pools = _segments(keys or n, p, causal=causal)
    conv_copies = max(run.number * run.size for run in pools) * d if p.pool == "conv" else 0
    peak = max(n * (d + 1), conv_copies) + 2 * m * d
    if not causal:
        return Cost(multiply_adds=2 * n * m * d, peak_elements=peak)
    pairs = block_pairs(n, p.stride, causal=True) + residue_pairs(later_queries, p.stride, causal=True)
    union_elements = max(2 * later_queries * (d + 2), (n + later_queries) * d) if later_queries else 0
    return Cost(multiply_adds=2 * pairs * d, peak_elements=peak + union_elements)


VARIANT = Variant(
    __name__,
    title="Pooled keys",
    summary="Neighbouring keys and values are combined into pools, and every query attends to the pools instead of "
    "single tokens. With a causal mask, each query attends to earlier pools, and to the single tokens of its own pool.",
    formula=r"A = \operatorname{softmax}\left(\frac{Q\, R(K)^\top}{\sqrt{d}}\right) R,"
    r"\quad R = P \in \mathbb{R}^{\lceil n/s \rceil \times n},"
    r"\quad \text{causal: } R = \begin{bmatrix} P \\ I \end{bmatrix}",
    complexity="n² d / s",
    params=PooledParams,
    trainable=(
        Trainable(name="window", title="weights within a pool", per="layer", shape=lambda p, tokens, d: (p.stride,)),
    ),
    source=Paper("Generating Wikipedia by Summarizing Long Sequences", 2018, "https://arxiv.org/abs/1801.10198"),
    approximates="softmax",
    note="A pool is one key and one value that represent a group of neighbouring tokens. The tokens of a pool get "
    'equal weights, except with "conv", where the middle of the pool gets more weight.',
    special_cases=(SpecialCase("softmax", {"stride": 1}),),
)
