"""Pseudo-inverses of small matrices, by iteration or by singular value decomposition."""

from collections.abc import Iterator

import torch
from torch import Tensor

RCOND = 1e-10
"""Singular values under this share of the largest are treated as rounding errors of float64."""


def inverse_steps(a: Tensor, iterations: int) -> Iterator[Tensor]:
    """Yield approximations ``V_0, ..., V_T`` of the pseudo-inverse of ``a``, ``[..., m, m]`` each.

    ``V_0 = aᵀ / (‖a‖₁ ‖a‖_∞)``, then ``V ← ¼ V (13 I - aV (15 I - aV (7 I - aV)))``, of third order. The norms
    are those of each matrix. Other implementations use the largest norms of the batch, so that one example changes the
    output of another.

    Source: Razavi et al. 2014; Xiong et al. 2021, arXiv 2102.03902.
    """
    magnitude = a.abs()
    norms = magnitude.sum(-2).amax(-1) * magnitude.sum(-1).amax(-1)
    v = a.mT / norms[..., None, None]
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    yield v
    for _ in range(iterations):
        av = a @ v
        v = 0.25 * v @ (13 * identity - av @ (15 * identity - av @ (7 * identity - av)))
        yield v


def exact_inverse(a: Tensor) -> Tensor:
    """Compute the pseudo-inverse by singular value decomposition, ``[..., c, r]`` for ``[..., r, c]``.

    Singular values under ``RCOND`` times the largest are dropped. ``a`` should be float64, since the inverse may have
    entries up to ``1 / RCOND``.
    """
    return torch.linalg.pinv(a, rtol=RCOND)
