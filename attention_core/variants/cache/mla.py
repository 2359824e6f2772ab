"""Multi-head latent attention: caches short latents per token and reconstructs all heads' keys and values from them.

Only the latents are cached. Here, they are the latents with the smallest reconstruction error: the truncated singular
value decomposition of the keys of all heads, joined into one matrix, and of the values of all heads. Keys and values
have separate latents, so that the weights depend only on queries and keys. Trained models learn one latent for both.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.linalg import vector_norm

from attention_core.ops.once_differentiable import once_differentiable
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, scores
from attention_core.variant import TOKENS, Cache, Cost, Paper, Params, SpecialCase, Variant, param

SAMPLED_RANKS = 16
"""Ranks at which the anatomy computes the error."""
TOKENS_PER_CHUNK = 256
"""Tokens whose keys or values are converted to float64 together."""


class MlaParams(Params):
    """Settings of multi-head latent attention."""

    rank: int = param(
        32,
        low=1,
        high=4096,
        scale="log",
        budget=True,
        help="Length r of each latent, the short vector that is cached. A token has one latent for the keys of all "
        "heads and one for the values of all heads. Longer latents reconstruct keys and values more exactly. If the "
        "reconstruction is exact, the result is softmax attention.",
    )


def join_heads(x: Tensor) -> Tensor:
    """Join all heads (axis -3) of each token into one row, ``[..., n, H d]``."""
    return x if x.ndim == 2 else x.transpose(-3, -2).flatten(-2)


def truncate_rank(x: Tensor, rank: int) -> Tensor:
    """Return x, ``[..., H, n, d]``, after its joined heads were replaced by the closest matrix of this rank.

    The result is at least float32.
    """
    x = at_least_float32(x)
    rows = join_heads(x)
    if rank >= min(rows.shape[-2:]):
        return x
    projected = rows @ _LeadingProjection.apply(_gram(rows), rank).to(rows)  # X V_r V_rᵀ = U_r S_r V_rᵀ
    return projected if x.ndim == 2 else _split_heads(projected, x)


def _gram(rows: Tensor) -> Tensor:
    """Return ``rowsᵀ rows`` in float64, summed by chunks: a float64 copy of all rows would need much memory."""
    gram = rows.new_zeros(*rows.shape[:-2], rows.shape[-1], rows.shape[-1], dtype=torch.float64)
    for chunk in rows.split(TOKENS_PER_CHUNK, -2):
        chunk_float = chunk.double()
        gram += chunk_float.mT @ chunk_float
    return gram


def _split_heads(rows: Tensor, like: Tensor) -> Tensor:
    """Undo ``join_heads``: return the rows in the shape of ``like``, ``[..., H, n, d]``."""
    return rows.unflatten(-1, (like.shape[-3], -1)).transpose(-3, -2)


class _LeadingProjection(torch.autograd.Function):
    """The projection onto the leading eigenvectors of a symmetric matrix; equal eigenvalues also have a gradient."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, rank: int) -> Tensor:  # noqa: ANN401 - torch's context object
        decomposition = torch.linalg.eigh(matrix)
        ctx.save_for_backward(*decomposition)
        ctx.rank = rank
        leading = decomposition.eigenvectors[..., -rank:]
        return leading @ leading.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        eigenvalues, vectors = ctx.saved_tensors
        other, leading = vectors[..., : -ctx.rank], vectors[..., -ctx.rank :]
        gap = eigenvalues[..., -ctx.rank :, None] - eigenvalues[..., None, : -ctx.rank]
        mixed = leading.mT @ (grad + grad.mT) @ other / torch.where(gap > 0, gap, math.inf)
        gradient = leading @ mixed @ other.mT
        return (gradient + gradient.mT) / 2, None


def weights(q: Tensor, k: Tensor, p: MlaParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q k'ᵀ / √d)`` with the keys reconstructed from the latents, ``[..., n, n]``."""
    return masked_softmax(scores(q, truncate_rank(k, p.rank)), None)


def values(v: Tensor, p: MlaParams) -> Tensor:
    """Return the values reconstructed from the latents, ``[..., n, d_v]``."""
    return truncate_rank(v, p.rank).to(v.dtype)


def definition(q: Tensor, k: Tensor, v: Tensor, p: MlaParams, *, causal: bool) -> Tensor:
    """Compute softmax attention to keys and values truncated to rank r over all heads, ``[..., n, d_v]``."""
    truncated = []
    for x in (k, v):
        U, S, Vh = torch.linalg.svd(join_heads(x), full_matrices=False)
        latents = U[..., : p.rank] * S[..., None, : p.rank]  # [..., n, r], what a model caches
        rows = latents @ Vh[..., : p.rank, :]  # [..., n, H d]
        truncated.append(rows if x.ndim == 2 else _split_heads(rows, x))
    keys, values = truncated
    return scores(q, keys).softmax(-1) @ values


def attend(q: Tensor, k: Tensor, v: Tensor, p: MlaParams, *, causal: bool) -> Tensor:
    """Compute the output with the fused kernel: O(n² d + n d²) time, O(n d + d²) memory."""
    return exact_attention(at_least_float32(q), truncate_rank(k, p.rank), truncate_rank(v, p.rank)).to(v.dtype)


def cost(n: int, d: int, p: MlaParams, *, causal: bool, heads: int, keys: int | None = None) -> Cost:
    """Return the cost: softmax's, plus a Gram matrix and a projection for the keys and for the values of all heads.

    The eigenvectors of the Gram matrix are not counted.
    """
    columns, m = heads * d, keys or n
    join_elements = m * columns * (heads > 1)  # joining several heads into one matrix copies their numbers
    if p.rank >= min(m, columns):
        return Cost(multiply_adds=2 * n * m * columns, peak_elements=max(n * (columns + heads), join_elements))
    size, square = m * columns, columns**2
    latents = 2 * m * square + square * p.rank
    # The peak is reached at one of four points: while the values' Gram matrix is summed, while its eigenvectors are
    # computed, when the values are reconstructed, or when softmax attention has computed the output.
    gram = max(6 * square, 2 * square + 2 * min(m, 2 * TOKENS_PER_CHUNK) * columns)  # two chunks are in memory
    peak = join_elements + max(size + gram, 2 * size + 3 * square)
    peak = max(peak, n * (columns + heads) + 2 * size)
    return Cost(multiply_adds=2 * n * size + 2 * latents, peak_elements=peak)


def cache(heads: int, d: int, d_v: int, p: MlaParams) -> Cache:
    """Return the numbers cached: both latents of each token, and the matrices that reconstruct keys and values."""
    key_rank, value_rank = (min(p.rank, heads * size) for size in (d, d_v))
    return Cache(per_token=key_rank + value_rank, fixed=heads * (key_rank * d + value_rank * d_v))


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: MlaParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the logits, the singular values, and the error at several ranks.

    ``logits`` is ``q k'ᵀ / √d``, ``[..., n, n]``. The others have no head axis. ``key_sizes`` and ``value_sizes``,
    ``[..., n]``, are the singular values of all heads' keys and values side by side, followed by zeros. ``ranks``,
    ``int64 [16]``, run from 1 to the keys' full rank. ``errors``, ``[..., 16]``, are the relative errors of the weights
    at these ranks against softmax, in the Frobenius norm.
    """
    q, k, v = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    n, exact = q.shape[-2], masked_softmax(scores(q, k), None)
    U, S, Vh = torch.linalg.svd(join_heads(k), full_matrices=False)
    value_sizes = torch.linalg.svdvals(join_heads(v))
    ranks = torch.linspace(1, S.shape[-1], SAMPLED_RANKS, dtype=torch.float32, device=S.device).round().long()
    axes = tuple(range(-min(3, k.ndim), 0))
    errors = []
    for rank in ranks.tolist():
        rows = (U[..., :rank] * S[..., None, :rank]) @ Vh[..., :rank, :]
        keys = rows if k.ndim == 2 else _split_heads(rows, k)
        errors.append(vector_norm(masked_softmax(scores(q, keys), None) - exact, dim=axes))
    return {
        "logits": scores(q, truncate_rank(k, p.rank)),
        "key_sizes": F.pad(S, (0, n - S.shape[-1])),
        "value_sizes": F.pad(value_sizes, (0, n - value_sizes.shape[-1])),
        "ranks": ranks,
        "errors": torch.stack(errors, -1) / vector_norm(exact, dim=axes).unsqueeze(-1),
    }


VARIANT = Variant(
    __name__,
    title="Latent attention",
    summary="For each token, the cache stores only short vectors (latents), from which the keys and values of all "
    "heads are computed.",
    formula=r"A^{(h)} = \operatorname{softmax}\left(\frac{Q^{(h)} (C W^{(h)})^\top}{\sqrt d}\right),\quad "
    r"[K^{(1)} \cdots K^{(H)}] \approx C W,\; C \in \mathbb R^{n \times r},\quad "
    r"[V^{(1)} \cdots V^{(H)}] \approx C' W'",
    complexity="n² d + n d²",
    params=MlaParams,
    approximates="softmax",
    causal_reason="the latents (short cached vectors) are computed from the whole text, including later tokens.",
    couples_heads=True,
    source=Paper(
        "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model",
        2024,
        "https://arxiv.org/abs/2405.04434",
    ),
    note="A latent is the short vector that is cached for a token. Published models learn one latent per token, from "
    "which they compute both keys and values. They also cache a separate key for each token, which carries its "
    "position. Here, nothing is learned: each token has one latent for its keys and one for its values. They come "
    "from truncated singular value decompositions of the text's own keys and values.",
    special_cases=(SpecialCase("softmax", {"rank": TOKENS}),),
)
