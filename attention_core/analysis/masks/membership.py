"""The weight of each token in each landmark (a mean of tokens), and the variance lost if landmarks replace tokens."""

import numpy as np
import torch
from torch import Tensor

from attention_core.inputs.record import QKV
from attention_core.metrics.approximation import relative_error
from attention_core.ops.low_rank.landmarks import landmarks
from attention_core.ops.low_rank.pooling import even_segments, spread


def landmark_inputs(qkv: QKV, head: int) -> dict[str, Tensor]:
    """Return one head's ``query`` and ``key``, ``[n, d]`` each: the tensors that can have landmarks."""
    return {"query": qkv.q[head], "key": qkv.k[head]}


def membership(x: Tensor, m: int, method: str) -> np.ndarray:
    """Return each token's share in each landmark, ``[min(m, n), n]``.

    Each row, one landmark, sums to one, or is zero if no token belongs to the landmark.

    Args:
        x: queries or keys of one head, ``[n, d]``.
        m: requested number of landmarks.
        method: a method of ``ops.low_rank.landmarks``. With ``"segment_means"``, each landmark is the mean of its
            tokens. With ``"kmeans"``, a token belongs to its nearest landmark, which can differ slightly from the mean
            of its tokens; ``landmark_drift`` measures the difference.
    """
    n = x.shape[-2]
    if method == "segment_means" or m >= n:
        segments = even_segments(n, m)
        landmark_of = spread(torch.arange(min(m, n)).unsqueeze(-1), segments).squeeze(-1)
    else:
        landmark_of = torch.cdist(x.double(), landmarks(x, m, method).double()).argmin(-1)
    is_member = torch.arange(min(m, n)).unsqueeze(-1) == landmark_of
    return (is_member.double() / is_member.sum(-1, keepdim=True).clamp(min=1)).numpy()


def landmark_drift(x: Tensor, m: int, method: str) -> float:
    """Return the distance between the landmarks and the means of their tokens, divided by the landmarks' norm."""
    centres = landmarks(x.double(), m, method)
    shares = torch.from_numpy(membership(x, m, method))
    means = torch.where(shares.sum(-1, keepdim=True) > 0, shares @ x.double(), centres)
    return float(relative_error(means, centres))


def lost_variance(x: Tensor, shares: np.ndarray) -> np.ndarray:
    """Return how much variance is lost if the mean of a landmark's tokens replaces them, as shares of all variance.

    The sum over the landmarks is the share that all landmarks lose together.

    Args:
        x: queries or keys of one head, ``[n, d]``.
        shares: result of ``membership`` for ``x``.

    Returns:
        One share per landmark, ``[m]``.
    """
    vectors = x.double().numpy()
    distances = np.square(vectors - (shares @ vectors)[shares.argmax(0)]).sum(-1)
    total = np.square(vectors - vectors.mean(0)).sum()
    return (shares > 0) @ distances / (total or 1.0)
