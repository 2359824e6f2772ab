"""The singular values of a matrix, its ranks, and the floor they put under every low-rank approximation."""

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.metrics.error import ratio


def singular_values(weights: Tensor) -> Tensor:
    """Singular values in descending order, ``[..., m]`` float64; NaN where the matrix holds NaN or infinity.

    Those of a float64 matrix are found from itself; those of a shorter type as roots of the eigenvalues of ``A Aᵀ`` in
    float64, in two thirds of the time: they are off by up to 1e-8 of the largest, of which such a matrix itself is off
    by more. O(n³), the only metric above O(n²).

    Args:
        weights: ``[..., n, n]``, or with fewer columns or rows than the other, of which there are m.
    """
    sane = weights.isfinite().all(-1).all(-1)[..., None]
    finite = torch.where(sane[..., None], weights, 0.0)
    if weights.dtype == torch.float64:
        return torch.linalg.svdvals(finite).masked_fill(~sane, torch.nan)
    wide = (finite.mT if weights.shape[-2] > weights.shape[-1] else finite).double()
    squares = torch.linalg.eigvalsh(wide @ wide.mT).clamp_min(0.0)
    return squares.flip(-1).sqrt().masked_fill(~sane, torch.nan)


def rank(weights: Tensor) -> Tensor:
    """Numerical rank, ``[...]`` float64: singular values above ``σ₁ n ε`` with ε of the matrix's own type.

    As ``numpy.linalg.matrix_rank``: what lies below may be rounding. NaN where the matrix holds NaN or infinity.
    """
    return rank_of(singular_values(weights), weights.dtype)


def rank_of(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Numerical rank, ``[...]``, of a matrix of some type with these singular values ``[..., n]``."""
    # In bfloat16 n ε passes one, which would call every matrix zero.
    tolerance = min(values.shape[-1] * torch.finfo(dtype).eps, 0.1)
    count = (values > tolerance * values[..., :1]).sum(-1).double()
    return count.masked_fill(values[..., 0].isnan(), torch.nan)


def effective_rank(weights: Tensor) -> Tensor:
    """Effective rank, ``[...]`` float64: how many directions the matrix uses, from 1 to n, weighted by their size.

    The exponential of the entropy of the singular values taken as shares; 0 for a zero matrix. Source: Roy and Vetterli
    2007, "The effective rank: a measure of effective dimensionality".
    """
    return effective_rank_of(singular_values(weights))


def effective_rank_of(values: Tensor) -> Tensor:
    """Effective rank, ``[...]``, of a matrix with these singular values ``[..., n]``."""
    total = values.sum(-1)
    shares = values / torch.where(total == 0, 1.0, total)[..., None]
    return torch.special.entr(shares).sum(-1).exp().masked_fill(total == 0, 0.0)


def truncated_svd_errors(reference: Tensor) -> Tensor:
    """The relative error that no matrix of rank m can beat, for every m = 0 .. n, ``[..., n + 1]`` float64.

    From one singular value decomposition of ``reference``, ``[..., n, n]`` (Eckart and Young).
    """
    tails = tails_of(singular_values(reference))
    return ratio(tails, tails[..., :1])


def truncated_svd_error(reference: Tensor, m: int) -> Tensor:
    """The relative error that no matrix of rank m can beat, ``[...]`` float64; n or more leaves no error."""
    return truncated_svd_errors(reference)[..., min(m, reference.shape[-1])]


def tails_of(values: Tensor) -> Tensor:
    """Norm of all singular values ``[..., n]`` but the m largest, for every m = 0 .. n, ``[..., n + 1]``."""
    # Smallest first, so that a small tail is not lost beside the large ones.
    return F.pad(values.square().flip(-1).cumsum(-1), (1, 0)).flip(-1).sqrt()
