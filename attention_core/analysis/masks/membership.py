"""How much of each token a landmark (a mean of some tokens) contains, and how much information landmarks lose."""

import numpy as np
import torch
from torch import Tensor

from attention_core.inputs.record import QKV
from attention_core.metrics.approximation import relative_error
from attention_core.ops.low_rank.landmarks import landmarks
from attention_core.ops.low_rank.pooling import even_segments, spread


def sides(qkv: QKV, head: int) -> dict[str, Tensor]:
    """Return the vectors that have landmarks: ``query`` and ``key`` vectors of one head, each ``[n, d]``."""
    return {"query": qkv.q[head], "key": qkv.k[head]}


def membership(x: Tensor, m: int, method: str) -> np.ndarray:
    """Return each token's share in each landmark, ``[min(m, n), n]``; a row sums to one, or is zero without tokens.

    Args:
        x: queries or keys of one head, ``[n, d]``.
        m: requested number of landmarks.
        method: a method of ``ops.low_rank.landmarks``. For segment means the shares define the means. For k-means a
            token belongs to the nearest landmark, as in one further round; ``drift`` measures how far that round would
            move the landmarks.
    """
    n = x.shape[-2]
    if method == "segment_means" or m >= n:
        segments = even_segments(n, m)
        owner = spread(torch.arange(min(m, n)).unsqueeze(-1), segments).squeeze(-1)
    else:
        owner = torch.cdist(x.double(), landmarks(x, m, method).double()).argmin(-1)
    belongs = torch.arange(min(m, n)).unsqueeze(-1) == owner
    return (belongs.double() / belongs.sum(-1, keepdim=True).clamp(min=1)).numpy()


def drift(x: Tensor, m: int, method: str) -> float:
    """Return the distance of the landmarks from the means of their tokens by ``membership``, relative to their size."""
    centres = landmarks(x.double(), m, method)
    shares = torch.from_numpy(membership(x, m, method))
    moved = torch.where(shares.sum(-1, keepdim=True) > 0, shares @ x.double(), centres)
    return float(relative_error(moved, centres))


def lost(x: Tensor, shares: np.ndarray) -> float:
    """Return the share of the variance lost when each token is replaced by the mean of its landmark's tokens.

    Args:
        x: queries or keys of one head, ``[n, d]``.
        shares: result of ``membership`` for ``x``.
    """
    wide = x.double().numpy()
    means = (shares @ wide)[shares.argmax(0)]
    total = float(np.square(wide - wide.mean(0)).sum())
    return float(np.square(wide - means).sum()) / total if total else 0.0
