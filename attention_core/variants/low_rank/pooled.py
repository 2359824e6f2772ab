"""Memory-compressed attention: every query looks at pooled keys, each standing for a few neighbouring tokens.

It stands in for softmax, the stride being the budget: at stride 1 every token is its own pool and it is softmax. The
paper pools with a strided convolution it trains; here its window is a fixed triangle or flat.

Where the stride does not divide n, pools differ in size by at most one. Max pooling concerns the keys alone: values
stay mean-pooled, else the output were no matrix times v.
"""

from dataclasses import dataclass

from torch import Tensor

from attention_core.algorithms.exact import exact_attention
from attention_core.algorithms.masked import scores
from attention_core.algorithms.pooling import pool, pooling_matrix, strided_segments
from attention_core.algorithms.precision import widened
from attention_core.variant import Cost, Paper, Params, Variant, param


@dataclass(frozen=True, kw_only=True)
class PooledParams(Params):
    """Settings of attention to pooled keys."""

    stride: int = param(
        4,
        low=1,
        high=256,
        scale="log",
        budget=True,
        help="Neighbouring tokens in one pool; larger is cheaper and coarser, 1 is softmax itself.",
    )
    pool: str = param(
        "mean",
        choices=("mean", "conv", "max"),
        help="mean: a pool's key is the mean of its keys; conv: the same with the middle counting most; max: the "
        "largest value of each component.",
    )


def _for_values(p: PooledParams) -> str:
    return "mean" if p.pool == "max" else p.pool


def weights(q: Tensor, k: Tensor, p: PooledParams, *, causal: bool) -> Tensor:
    """``S(q P(k)ᵀ / √d) P``, ``[..., n, n]``."""
    parts = anatomy(q, k, k, p, causal=causal)
    return parts["left"] @ parts["right"]


def attend(q: Tensor, k: Tensor, v: Tensor, p: PooledParams, *, causal: bool) -> Tensor:
    """Full attention to n/s pooled keys and values: O(n² d / s), never n x n."""
    segments = strided_segments(q.shape[-2], p.stride)
    keys, values = pool(widened(k), segments, p.pool), pool(widened(v), segments, _for_values(p))
    return exact_attention(widened(q), keys, values).to(v.dtype)


def cost(n: int, d: int, p: PooledParams, *, causal: bool) -> Cost:
    """Two n x n/s x d products."""
    m = -(-n // p.stride)
    return Cost(multiply_adds=2 * n * m * d, peak_elements=n * (d + 1) + 2 * m * d)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: PooledParams, *, causal: bool) -> dict[str, Tensor]:
    """Which tokens each key covers, ``provenance = P [m, n]``, and the factors ``left @ right = weights``."""
    segments = strided_segments(q.shape[-2], p.stride)
    window = pooling_matrix(segments, q, _for_values(p))
    return {"provenance": window, "left": scores(q, pool(k, segments, p.pool)).softmax(-1), "right": window}


VARIANT = Variant(
    key="pooled",
    title="Pooled keys",
    family="low_rank",
    summary="Neighbouring tokens share one pooled key and value; every query looks at the pools.",
    formula=r"A = \operatorname{softmax}\left(\frac{Q\, P(K)^\top}{\sqrt{d}}\right) P,"
    r"\quad P \in \mathbb{R}^{\lceil n/s \rceil \times n}",
    complexity="n² d / s",
    params=PooledParams,
    weights=weights,
    attend=attend,
    cost=cost,
    source=Paper("Generating Wikipedia by Summarizing Long Sequences", 2018, "https://arxiv.org/abs/1801.10198"),
    approximates="softmax",
    causal_reason="a pool blends neighbouring tokens before any query looks, so a token would see those after it in "
    "its own pool.",
    anatomy=anatomy,
    note="All tokens of a pool get the same weight, so its matrix is made of bars one pool wide.",
)
