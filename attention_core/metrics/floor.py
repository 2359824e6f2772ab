"""Lower bounds on a matrix's error: the smallest error that its rank, or its number of non-zeros per row, allows."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from attention_core.metrics.approximation import oracle_keys_error
from attention_core.metrics.spectrum import rank_of_values, singular_values, tail_norms

MIN_DENSITY = 0.6
"""Minimum share of non-zeros for which the rank is computed. Sparser matrices are masked and usually keep full
rank, so the rank gives no bound, and computing singular values would take most of the time.
"""


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The lower bound on the error of a matrix.

    Attributes:
        error: lower bound of the relative Frobenius error of all matrices of the same kind; 0 if there is no bound.
        kind: source of the bound: the ``"rank"``, the ``"keys"`` (non-zeros in each row), or empty for no bound.
        rank: numerical rank; None if the matrix is not dense.
        keys: mean number of non-zeros per row.
    """

    error: float
    kind: Literal["rank", "keys", ""]
    rank: int | None
    keys: float


def error_floor(weights: Tensor, reference: Tensor) -> Floor:
    """Compute the lower bound on the error of a matrix from its numerical rank and its zeros.

    One bound is the error of the closest matrix to the reference with the same number of non-zeros in each row,
    which keeps the reference's largest entries. The other bound follows from the closest matrix of the same rank,
    the truncated singular value decomposition. If both bounds apply, the higher one counts.

    Args:
        weights: ``[n, m]``, finite.
        reference: ``[n, m]``, finite.
    """
    n, keys = weights.shape[-1], (weights != 0).sum(-1)
    keys_bound = float(oracle_keys_error(reference, keys)) if (keys < n).any() else 0.0
    rank, rank_bound = None, 0.0
    if int(keys.sum()) >= MIN_DENSITY * weights.numel():
        values = singular_values(weights)
        rank = int(rank_of_values(values, weights))
        if rank < n:
            tails = tail_norms(singular_values(reference))
            # The numerical rank ignores small singular values of the matrix. With them, the matrix can be closer to the
            # reference than the best matrix of this rank, by at most the norm of the ignored values. That norm is
            # therefore subtracted from the bound.
            rank_bound = max(float(tails[rank] - tail_norms(values)[rank]), 0.0) / (float(tails[0]) or 1.0)
    return Floor(
        error=max(rank_bound, keys_bound),
        kind="rank" if rank_bound > keys_bound else "keys" if keys_bound > 0 else "",
        rank=rank,
        keys=float(keys.double().mean()),
    )
