"""Landmarks: means of consecutive segments or of k-means clusters of tokens, which represent all tokens."""

import torch
from torch import Tensor

from attention_core.ops.low_rank.pooling import even_segments, pool

METHODS = ("segment_means", "kmeans")

LLOYD_ROUNDS = 4
"""Rounds of k-means, which starts from segment means; further rounds hardly move the centres."""


def landmarks(x: Tensor, m: int, method: str) -> Tensor:
    """Compute the landmarks of ``[..., n, d]``, ``[..., min(m, n), d]``, without random numbers.

    Args:
        x: queries or keys.
        m: number of landmarks; with ``m >= n`` every token is its own landmark.
        method: ``"segment_means"``: means of neighbours, in segments whose lengths differ by at most one token;
            ``"kmeans"``: a few rounds of k-means that start from segment means. The gradient flows through the
            means, but not through the assignment of tokens to centres. A centre that loses all its tokens does not
            move.
    """
    centres = pool(x, even_segments(x.shape[-2], m))
    if method == "segment_means" or m >= x.shape[-2]:
        return centres
    # The mean is subtracted from all tokens, because a large common part would cause rounding errors in the distances.
    mean = x.mean(-2, keepdim=True)
    x, centres = x - mean, centres - mean
    for _ in range(LLOYD_ROUNDS):
        centres = _kmeans_round(centres, x)
    return centres + mean


def _kmeans_round(centres: Tensor, x: Tensor) -> Tensor:
    with torch.no_grad():
        # The squared distance |x - c|² is computed without |x|², which is the same for all centres, so the nearest
        # centre is the same.
        distance = (x @ centres.mT).mul_(-2).add_(centres.square().sum(-1).unsqueeze(-2))
        nearest = distance.argmin(-1, keepdim=True)
        member = distance.zero_().scatter_(-1, nearest, 1.0).mT
        size = member.sum(-1, keepdim=True)
    return torch.where(size > 0, member @ x / size.clamp(min=1), centres)


def landmark_multiply_adds(n: int, m: int, d: int, method: str) -> int:
    """Count the multiply-adds of ``landmarks`` for one head."""
    return 0 if method == "segment_means" or m >= n else 2 * LLOYD_ROUNDS * n * m * d
