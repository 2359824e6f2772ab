"""Pyramid pooling: every query attends to mean keys of the whole text and of smaller and smaller parts.

Asymmetric non-local networks pool the keys and values of an image to grids of 1, 3, 6 and 8 cells on each side. Here, a
text is divided four times, into ℓ, 3ℓ, 6ℓ and 8ℓ segments, where ℓ is the setting ``levels``. A division is called a
level, and its segments are pools: their keys and values are averaged. Pyramid pooling approximates softmax. A level has
at most n pools, and levels with the same number of pools are used once. With ``ℓ >= n``, only the single tokens remain,
and the result is softmax.
"""

import torch
from torch import Tensor

from attention_core.ops.low_rank.pooling import even_segments, pool, pooling_matrix
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, scores
from attention_core.variant import Cost, Intermediate, Paper, Params, Variant, param

POOLS_PER_LEVEL = (1, 3, 6, 8)
"""Pools in each level of the paper's pyramid."""


class PyramidParams(Params):
    """Settings of pyramid pooling."""

    levels: int = param(
        1,
        low=1,
        high=128,
        scale="log",
        budget=True,
        help="Base number ℓ of pools, the segments of text whose keys and values are averaged. The text is divided "
        "four times, from coarse to fine: into ℓ, 3ℓ, 6ℓ and 8ℓ pools, but never into more pools than tokens. "
        "More pools keep more detail but cost more. If two divisions have the same number of pools, only one of "
        "them is used.",
    )


def _pool_counts(n: int, p: PyramidParams) -> list[int]:
    """Return the number of pools of each level: 1, 3, 6 and 8 times ``levels``, at most n, without repetitions."""
    return list(dict.fromkeys(min(size * p.levels, n) for size in POOLS_PER_LEVEL))


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: PyramidParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the weight of each token in each pool, ``provenance [S, n]``, and the factors of ``weights``.

    The factors are ``left``, ``[..., n, S]``, and ``right``, ``[S, n]``, with ``weights = left @ right``.
    """
    n = k.shape[-2]
    P = torch.cat([pooling_matrix(even_segments(n, m), q) for m in _pool_counts(n, p)])  # [S, n], a row for each pool
    return {"provenance": P, "left": scores(q, P @ k).softmax(-1), "right": P}  # [..., n, S] @ [S, n]


def weights(q: Tensor, k: Tensor, p: PyramidParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q (P k)ᵀ / √d) P``, ``[..., n, n]``; each row of P averages the tokens of a pool."""
    n = k.shape[-2]
    P = torch.cat([pooling_matrix(even_segments(n, m), q) for m in _pool_counts(n, p)])  # [S, n], a row for each pool
    return scores(q, P @ k).softmax(-1) @ P


def _pools(x: Tensor, p: PyramidParams) -> Tensor:
    """Return the means of the tokens in each of the S pools of all levels, ``[..., S, d]``."""
    n = x.shape[-2]
    return torch.cat([pool(x, even_segments(n, m)) for m in _pool_counts(n, p)], -2)


def attend(q: Tensor, k: Tensor, v: Tensor, p: PyramidParams, *, causal: bool) -> Tensor:
    """Compute full attention to the S pools of all levels: O(n S d) time."""
    return exact_attention(at_least_float32(q), _pools(at_least_float32(k), p), _pools(at_least_float32(v), p)).to(
        v.dtype
    )


def cost(n: int, d: int, p: PyramidParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of two n x S x d products."""
    pools = sum(_pool_counts(keys or n, p))
    return Cost(multiply_adds=2 * n * pools * d, peak_elements=2 * pools * d + max(n * (d + 1), pools * d))


VARIANT = Variant(
    __name__,
    title="Pyramid pooling",
    summary="Every query attends to the mean keys and values of text segments, at up to four resolutions from coarse "
    "to fine, instead of single tokens.",
    formula=r"A = \operatorname{softmax}\left(\frac{Q (P K)^\top}{\sqrt{d}}\right) P,"
    r"\quad P = \begin{bmatrix} P_{\ell} \\ P_{3\ell} \\ P_{6\ell} \\ P_{8\ell} \end{bmatrix}",
    complexity="n S d",
    params=PyramidParams,
    source=Paper(
        "Asymmetric Non-local Neural Networks for Semantic Segmentation", 2019, "https://arxiv.org/abs/1908.07678"
    ),
    approximates="softmax",
    causal_reason="each pool is a mean over a segment of the text, including later tokens.",
    intermediates=(
        Intermediate(
            name="provenance",
            title="Pools",
            symbol="P",
            formula=r"\tilde K = P K,\qquad \tilde V = P V",
            mechanism="The text is cut into segments, at up to four resolutions from coarse to fine. The keys of each "
            "segment are averaged into one pool, and so are the values.",
            rows="pool",
            columns="token",
        ),
        Intermediate(
            name="left",
            title="Weights on pools",
            symbol="L",
            formula=r"L = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right)",
            mechanism="One softmax covers the averaged keys (pools) of all resolutions together, so coarse and fine "
            "pools compete for the weight of a query.",
            columns="pool",
        ),
    ),
    note=(
        "A pool is the mean of one segment of neighbouring tokens. The text is split at up to four resolutions, into "
        "1, 3, 6 and 8 times as many segments as the setting “levels”. No resolution has more segments than tokens. "
        "S, the number of pools of all resolutions together, is therefore at most 18 times “levels”. The weight of a "
        "pool is spread evenly over its tokens, so long segments make the weights of a row more equal."
    ),
)
