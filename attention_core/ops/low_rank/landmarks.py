"""A few means of tokens that stand for all tokens."""

import torch
from torch import Tensor

from attention_core.ops.low_rank.pooling import even_segments, pool

METHODS = ("segment_means", "kmeans")

LLOYD_ROUNDS = 4
"""Rounds of k-means: from segment means the centres hardly move after these."""


def landmarks(x: Tensor, m: int, method: str) -> Tensor:
    """Landmarks of ``[..., n, d]``, ``[..., min(m, n), d]``, the same on every call.

    Args:
        x: queries or keys.
        m: how many; with ``m >= n`` every token is its own.
        method: ``"segment_means"``: means of neighbours, segments differing by at most one token in length;
            ``"kmeans"``: from there, a few rounds of k-means. The gradient goes through the means; which token belongs
            to which centre has none, and a centre that loses all its tokens stays where it was.
    """
    centres = pool(x, even_segments(x.shape[-2], m))
    if method == "segment_means" or m >= x.shape[-2]:
        return centres
    # Relative to their mean: squares of a large common part would leave no digits for the distances.
    mean = x.mean(-2, keepdim=True)
    x, centres = x - mean, centres - mean
    for _ in range(LLOYD_ROUNDS):
        centres = _moved(centres, x)
    return centres + mean


def _moved(centres: Tensor, x: Tensor) -> Tensor:
    """One round of k-means: each centre goes to the mean of the tokens nearest to it."""
    with torch.no_grad():
        # |x - c|² less the |x|² that all centres share.
        distance = (x @ centres.mT).mul_(-2).add_(centres.square().sum(-1).unsqueeze(-2))
        nearest = distance.argmin(-1, keepdim=True)
        member = distance.zero_().scatter_(-1, nearest, 1.0).mT
        size = member.sum(-1, keepdim=True)
    return torch.where(size > 0, member @ x / size.clamp(min=1), centres)


def landmark_multiply_adds(n: int, m: int, d: int, method: str) -> int:
    """Multiply-adds of ``landmarks`` for one head."""
    return 0 if method == "segment_means" or m >= n else 2 * LLOYD_ROUNDS * n * m * d
