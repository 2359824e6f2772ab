"""Singular values of a matrix, its ranks, and the smallest error that a low-rank approximation can have."""

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.metrics.approximation import error_at, safe_ratio


def singular_values(weights: Tensor) -> Tensor:
    """Compute the singular values in descending order, ``[..., m]`` float64; NaN if the matrix holds NaN or infinity.

    A float64 matrix is decomposed directly. For narrower types, the singular values are the roots of the
    eigenvalues of ``A Aᵀ`` in float64, which takes two thirds of the time. Their error is up to 1e-8 of the largest
    singular value, less than the rounding error of such a matrix. The time is O(n³); all other metrics take O(n²).

    Args:
        weights: ``[..., n, n]``, or a rectangular matrix whose smaller side is m.
    """
    is_finite = weights.isfinite().all(-1).all(-1)[..., None]
    finite = torch.where(is_finite[..., None], weights, 0.0)
    if weights.dtype == torch.float64:
        return torch.linalg.svdvals(finite).masked_fill(~is_finite, torch.nan)
    wide_matrix = (finite.mT if weights.shape[-2] > weights.shape[-1] else finite).double()
    squares = torch.linalg.eigvalsh(wide_matrix @ wide_matrix.mT).clamp_min(0.0)
    return squares.flip(-1).sqrt().masked_fill(~is_finite, torch.nan)


def rank(weights: Tensor) -> Tensor:
    """Compute the numerical rank, ``[...]`` float64: the number of singular values above ``σ₁ min(n ε, 0.1)``.

    n is the larger side of the matrix, and ε is that of its type. Smaller values may be rounding errors. Except for the
    limit 0.1, this is the rule of ``numpy.linalg.matrix_rank``. NaN if the matrix holds NaN or infinity.
    """
    return rank_of_values(singular_values(weights), weights)


def rank_of_values(values: Tensor, weights: Tensor) -> Tensor:
    """Compute the numerical rank, ``[...]``, from the singular values of a matrix and the matrix itself."""
    # In bfloat16, the usual tolerance n ε can exceed one, which would give every matrix the rank zero. So it is at most
    # 0.1.
    tolerance = min(max(weights.shape[-2:]) * torch.finfo(weights.dtype).eps, 0.1)
    count = (values > tolerance * values[..., :1]).sum(-1).double()
    return count.masked_fill(values[..., 0].isnan(), torch.nan)


def effective_rank(weights: Tensor) -> Tensor:
    """Compute the effective rank, ``[...]`` float64, from 1 to n: the number of directions, weighted by their size.

    It is the exponential of the entropy of the singular values, first divided by their sum; a zero matrix has 0.
    Source: Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality".
    """
    return effective_rank_of_values(singular_values(weights))


def effective_rank_of_values(values: Tensor) -> Tensor:
    """Compute the effective rank, ``[...]``, from singular values ``[..., n]``."""
    total = values.sum(-1)
    shares = values / torch.where(total == 0, 1.0, total)[..., None]
    return torch.special.entr(shares).sum(-1).exp().masked_fill(total == 0, 0.0)


def truncated_svd_errors(reference: Tensor) -> Tensor:
    """Compute the lowest relative error of any matrix of rank m, for every m = 0 .. n, ``[..., n + 1]`` float64.

    All errors come from one singular value decomposition of ``reference``, ``[..., n, n]`` (Eckart and Young).
    """
    norms = tail_norms(singular_values(reference))
    return safe_ratio(norms, norms[..., :1])


def truncated_svd_error(reference: Tensor, m: int) -> Tensor:
    """Compute the lowest relative error of any matrix of rank m, ``[...]`` float64; 0 for m >= n.

    Raises:
        InputError: if m is negative.
    """
    return error_at(truncated_svd_errors(reference), m)


def tail_norms(values: Tensor) -> Tensor:
    """Compute the norm of all singular values ``[..., n]`` except the m largest, for m = 0 .. n, ``[..., n + 1]``."""
    # The cumulative sums start at the smallest value. If they started at the largest, rounding would lose the small
    # values.
    return F.pad(values.square().flip(-1).cumsum(-1), (1, 0)).flip(-1).sqrt()
