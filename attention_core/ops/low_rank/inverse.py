"""Pseudo-inverses of small matrices, by iteration or by singular values."""

from collections.abc import Iterator

import torch
from torch import Tensor

RCOND = 1e-10
"""Singular values under this share of the largest are rounding, not information: float64 holds 16 digits."""


def inverse_steps(a: Tensor, iterations: int) -> Iterator[Tensor]:
    """Approximations ``V_0, ..., V_T`` of the pseudo-inverse of ``a``, ``[..., m, m]`` each, third order in the error.

    ``V_0 = aᵀ / (‖a‖₁ ‖a‖_∞)`` with norms of each matrix by itself: one maximum over the whole batch, as other
    implementations take it, would let one example change another's output.
    ``V ← ¼ V (13 I - aV (15 I - aV (7 I - aV)))``.

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
    """The pseudo-inverse by singular values; ``a`` should be float64, its entries may reach the inverse of rounding.

    Singular values under ``RCOND`` of the largest are dropped. For ``[..., r, c]`` the inverse is ``[..., c, r]``.
    """
    return torch.linalg.pinv(a, rtol=RCOND)
