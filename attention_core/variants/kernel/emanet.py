"""Expectation-maximisation attention: a few bases, found by soft clustering of the keys, represent all tokens.

Each round assigns every key softly to the bases (E step), then moves each basis to the unit vector along the weighted
mean of its keys (M step). Finally, queries are assigned to the bases, and each basis returns the weighted mean of the
values, with the weights of the last E step.

The setting ``sharpness`` is the factor λ on products with bases. It is 1 by default, as in the paper. Bases are unit
vectors, so their products with keys do not grow with d as products of queries and keys do. A factor of 1/√d would make
all bases nearly equal.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.linear.scans import map_heads, needs_gradient, with_checkpoint
from attention_core.ops.random import normal
from attention_core.ops.softmax.masked import at_least_float32, safe_divisor
from attention_core.variant import Cost, Intermediate, Paper, Params, Variant, param


class EmanetParams(Params):
    """Settings of expectation-maximisation attention."""

    bases: int = param(
        16,
        low=1,
        high=1024,
        scale="log",
        budget=True,
        help="Number b of bases, the centres of the clusters of keys. More bases give a finer clustering but cost "
        "more.",
    )
    iterations: int = param(
        3,
        low=1,
        high=20,
        help=(
            "Number T of iterations of the clustering. Each iteration turns every basis (the centre of a cluster of "
            "keys) in the direction of the weighted mean of its keys. The bases usually stop changing after a few "
            "iterations."
        ),
    )
    sharpness: float = param(
        1.0,
        low=0.1,
        high=20.0,
        step=0.1,
        scale="log",
        help=(
            "Sharpness of the softmax that assigns keys and queries to the bases, the centres of the clusters of "
            "keys. With small values, a key or query is spread over all bases. With large values, it belongs to one "
            "basis only."
        ),
    )
    seed: int = param(
        0, low=0, high=2**31 - 1, help="Random seed of the initial bases, the centres of the clusters of keys."
    )


def unit_vectors(x: Tensor) -> Tensor:
    """Return rows of length one; a row of zeros stays zero."""
    return x / safe_divisor(x.norm(dim=-1, keepdim=True))


def definition(q: Tensor, k: Tensor, v: Tensor, p: EmanetParams, *, causal: bool) -> Tensor:
    """Compute the mean value of each cluster of keys, mixed for each query by the query's shares in the clusters."""
    bases = unit_vectors(normal((p.bases, k.shape[-1]), p.seed, k))  # μ, [b, d]
    for _ in range(p.iterations):
        z = (p.sharpness * k @ bases.mT).softmax(-1)  # E step: responsibilities, [..., n, b]
        shares = z / z.sum(-2, keepdim=True)
        bases = unit_vectors(shares.mT @ k)  # M step
    return (p.sharpness * q @ bases.mT).softmax(-1) @ (shares.mT @ v)


def em_iterations(k: Tensor, p: EmanetParams) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the log responsibilities, ``[..., n, b]``, and the new bases, ``[..., b, d]``, of each round.

    The first round starts from random directions that depend on the seed only, so they are equal for all heads.
    """
    bases = unit_vectors(normal((p.bases, k.shape[-1]), p.seed, k))  # μ, [b, d]
    for _ in range(p.iterations):
        log_z = (k @ (p.sharpness * bases).mT).log_softmax(-1)  # E step, [..., n, b]
        # With many bases, the shares of the keys need as much memory as the rest of a round. A checkpoint then drops
        # them, and the backward pass recomputes them.
        m_step = with_checkpoint(mean_directions, k) if has_many_bases(k, p) else mean_directions
        bases = m_step(log_z, k)  # [..., b, d]
        yield log_z, bases


def has_many_bases(k: Tensor, p: EmanetParams) -> bool:
    """Return whether the number of bases is more than half of the head size d."""
    return 2 * p.bases > k.shape[-1]


def mean_directions(log_z: Tensor, k: Tensor) -> Tensor:
    """Return the direction of the mean key of each basis, ``[..., b, d]``, given log responsibilities."""
    return unit_vectors(normalise_over_tokens(log_z).mT @ k)


def normalise_over_tokens(log_z: Tensor) -> Tensor:
    """Return the softmax of ``log_z`` over tokens, ``[..., n, b]``: responsibilities over their sum, without 0/0."""
    return log_z.softmax(-2)


def assignments(q: Tensor, k: Tensor, p: EmanetParams) -> tuple[Tensor, Tensor]:
    """Return the assignment of queries to bases and the share of each token in each basis, ``[..., n, b]`` both."""
    log_z, bases = deque(em_iterations(at_least_float32(k), p), maxlen=1).pop()
    query_shares = (at_least_float32(q) @ (p.sharpness * bases).mT).softmax(-1)  # softmax_bases(λ q μᵀ), [..., n, b]
    return query_shares, normalise_over_tokens(log_z)


def weights(q: Tensor, k: Tensor, p: EmanetParams, *, causal: bool) -> Tensor:
    """Return the product ``query_shares token_sharesᵀ`` of the two results of ``assignments``, ``[..., n, n]``."""
    query_shares, token_shares = assignments(q, k, p)
    return query_shares @ token_shares.mT  # [..., n, b] @ [..., b, n]


def attend(q: Tensor, k: Tensor, v: Tensor, p: EmanetParams, *, causal: bool) -> Tensor:
    """Compute the output with T rounds and b bases: O(T n b d) time.

    The values are averaged for each basis and then mixed for each query.
    """
    # All heads are computed together if there are few bases, or if gradients are needed: this takes less time.
    # Otherwise, one head at a time needs less memory.
    if not has_many_bases(k, p) or needs_gradient(q, k, v):
        return attend_heads(q, k, v, p)
    return map_heads(partial(attend_heads, p=p), q, k, v)


def attend_heads(q: Tensor, k: Tensor, v: Tensor, p: EmanetParams) -> Tensor:
    """Return the outputs of the given heads (all heads, or a single one), ``[..., n, d_v]``."""
    query_shares, token_shares = assignments(q, k, p)
    return (query_shares @ (token_shares.mT @ at_least_float32(v))).to(v.dtype)


def cost(n: int, d: int, p: EmanetParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products of tokens and bases, two per round, and three for queries and values."""
    b, m = p.bases, keys or n
    return Cost(
        multiply_adds=((2 * p.iterations + 1) * m + 2 * n) * b * d,
        peak_elements=max((2 + (p.iterations > 1)) * m * b, (2 * n + m) * b, n * d + (n + m) * b) + 2 * b * d,
    )


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: EmanetParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the clustering round by round.

    ``responsibilities``, ``[..., T, n, b]``: the assignment of keys in each round. ``bases``, ``[..., T, b, d]``: the
    unit vectors after each round. ``given``, ``[..., n, b]``: the assignment of queries to the last bases. ``taken``,
    ``[..., b, n]``: the share of each token in each basis.
    """
    iterations = list(em_iterations(at_least_float32(k), p))
    query_shares, token_shares = assignments(q, k, p)
    return {
        "responsibilities": torch.stack([log_z.exp() for log_z, _ in iterations], -3),
        "bases": torch.stack([bases for _, bases in iterations], -3),
        "given": query_shares,
        "taken": token_shares.mT,
    }


VARIANT = Variant(
    __name__,
    title="Expectation maximisation",
    summary="Keys are grouped into a few soft clusters with centres called bases, and each query mixes the average "
    "values of the clusters.",
    formula=r"A = \operatorname{softmax}_{\text{bases}}(\lambda Q \mu^\top)\,\hat Z^\top,\quad "
    r"Z = \operatorname{softmax}_{\text{bases}}(\lambda K \mu^\top),\; \hat Z_{jb} = \frac{Z_{jb}}{\sum_l Z_{lb}},\;"
    r" \mu \leftarrow \frac{\hat Z^\top K}{\|\hat Z^\top K\|}",
    complexity="T n b d",
    params=EmanetParams,
    causal_reason="the bases (centres of clusters of keys) are computed from all tokens, so every output depends on "
    "later tokens.",
    random=True,
    intermediates=(
        Intermediate(
            name="taken",
            title="Bases",
            symbol=r"\hat Z^\top",
            formula=r"\hat Z^\top,\qquad \hat Z_{jb} = \frac{Z_{jb}}{\sum_l Z_{lb}},\qquad "
            r"Z = \operatorname{softmax}_{\text{bases}}(\lambda K \mu^\top)",
            mechanism="A few iterations group the keys into soft clusters. The centre of a cluster, called its "
            "basis, is a weighted mean of keys, scaled to length 1. Each row shows the weights of this mean.",
            rows="basis",
            columns="token",
        ),
        Intermediate(
            name="given",
            title="Queries on bases",
            symbol="B",
            formula=r"B = \operatorname{softmax}_{\text{bases}}(\lambda Q \mu^\top),\qquad A = B \hat Z^\top",
            mechanism="Each query attends to the bases, the centres of the clusters of keys, instead of the keys. "
            "The value of a basis is a weighted mean of its tokens' values.",
            columns="basis",
        ),
    ),
    source=Paper(
        "Expectation-Maximization Attention Networks for Semantic Segmentation",
        2019,
        "https://arxiv.org/abs/1907.13426",
    ),
)
