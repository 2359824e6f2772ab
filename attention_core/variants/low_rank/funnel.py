"""Funnel: neighbouring queries are averaged in groups, and all tokens of a group share one output.

As in Funnel-Transformer, the first token keeps its own query, because a classifier uses its output. In the paper, the
shorter result is passed to the next layer, and it is repeated to full length after the last layer. Here, it is repeated
immediately, so that there is an n x n matrix. Funnel approximates softmax; a larger stride is cheaper but less
accurate, and at stride 1 the result is softmax.
"""

from torch import Tensor

from attention_core.ops.low_rank.pooling import (
    Run,
    Segments,
    pool,
    pooling_matrix,
    spread,
    spreading_matrix,
    strided_segments,
)
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, scores
from attention_core.variant import Cost, Intermediate, Paper, Params, SpecialCase, Variant, param


class FunnelParams(Params):
    """Settings of funnel attention."""

    stride: int = param(
        4,
        low=1,
        high=256,
        scale="log",
        budget=True,
        help="Maximum number s of neighbouring queries that are averaged. Larger groups cost less but lose more "
        "detail. 1 gives softmax attention.",
    )


def _segments(n: int, p: FunnelParams) -> Segments:
    """Return the segments: the first token alone, then segments of similar size with at most ``stride`` tokens."""
    return (Run(1, 1), *strided_segments(n - 1, p.stride))


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: FunnelParams, *, causal: bool) -> dict[str, Tensor]:
    """Return ``provenance = P [m, n]``, the means over m segments, and the factors ``left @ right = weights``.

    ``left = R [n, m]`` repeats each row of ``right = softmax((P q) kᵀ / √d) [..., m, n]`` for the segment's tokens.
    """
    segments = _segments(q.shape[-2], p)
    P = pooling_matrix(segments, q)  # [m, n], the mean of each segment
    R = spreading_matrix(segments, q)  # [n, m], repeats a row for each token of its segment
    return {"provenance": P, "left": R, "right": scores(P @ q, k).softmax(-1)}


def weights(q: Tensor, k: Tensor, p: FunnelParams, *, causal: bool) -> Tensor:
    """Compute ``R softmax((P q) kᵀ / √d)``, ``[..., n, n]``; P averages segments, R repeats a row per token."""
    segments = _segments(q.shape[-2], p)
    P = pooling_matrix(segments, q)  # [m, n], the mean of each segment
    R = spreading_matrix(segments, q)  # [n, m], repeats a row for each token of its segment
    return R @ scores(P @ q, k).softmax(-1)


def attend(q: Tensor, k: Tensor, v: Tensor, p: FunnelParams, *, causal: bool) -> Tensor:
    """Compute full attention of about n/s queries, for stride s, and repeat each output: O(n² d / s) time."""
    segments = _segments(q.shape[-2], p)
    return spread(
        exact_attention(pool(at_least_float32(q), segments), at_least_float32(k), at_least_float32(v)), segments
    ).to(v.dtype)


def cost(n: int, d: int, p: FunnelParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of two n/s x n x d products."""
    m = 1 - (1 - n) // p.stride
    return Cost(multiply_adds=2 * (keys or n) * m * d, peak_elements=(n + m) * d + m)


VARIANT = Variant(
    __name__,
    title="Funnel",
    summary="Neighbouring queries are averaged in groups, each averaged query attends to all keys, and all tokens of "
    "its group get the same output.",
    formula=r"A = R\, \operatorname{softmax}\left(\frac{(P Q) K^\top}{\sqrt{d}}\right),"
    r"\quad R \text{ repeats each row for the } s \text{ tokens averaged}",
    complexity="n² d / s",
    params=FunnelParams,
    source=Paper(
        "Funnel-Transformer: Filtering out Sequential Redundancy for Efficient Language Processing",
        2020,
        "https://arxiv.org/abs/2006.03236",
    ),
    approximates="softmax",
    causal_reason="if the stride is above 1, an averaged query contains later tokens, so the output of an earlier "
    "token depends on later tokens.",
    intermediates=(
        Intermediate(
            name="provenance",
            title="Pooled queries",
            symbol="P",
            formula=r"\tilde Q = P Q",
            mechanism="Each row of the matrix P averages a group of neighbouring queries. Only the first token of the "
            "input keeps its own query.",
            rows="pool",
            columns="token",
        ),
        Intermediate(
            name="right",
            title="Shared rows",
            symbol="R",
            formula=r"R = \operatorname{softmax}\left(\frac{\tilde Q K^\top}{\sqrt d}\right)",
            mechanism="Each averaged query attends to all keys. All tokens of its group get the resulting row of "
            "weights.",
            rows="pool",
        ),
    ),
    note="The first token of the input keeps its own query. All other tokens are divided into groups. The tokens of a "
    "group share one averaged query, so they have the same row of weights.",
    special_cases=(SpecialCase("softmax", {"stride": 1}),),
)
