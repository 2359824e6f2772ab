"""The floor beneath one approximation: what the best matrix of its kind would still lose."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from attention_core.metrics.error import oracle_keys_error
from attention_core.metrics.spectrum import rank_of, singular_values, tails_of

DENSE = 0.6
"""A matrix with a smaller share of non-zeros is judged by its keys alone: what is masked, causal ones too, keeps its
rank, and singular values take most of the time."""


@dataclass(frozen=True, kw_only=True)
class Floor:
    """What bounds the error of a matrix from below.

    Attributes:
        error: relative Frobenius error that no matrix of its kind can beat; 0 where nothing bounds it.
        kind: what bounds it: its ``"rank"``, its ``"keys"`` (non-zeros in each row), or nothing.
        rank: its numerical rank; None where the matrix is not dense.
        keys: its non-zeros per row, on average.
    """

    error: float
    kind: Literal["rank", "keys", ""]
    rank: int | None
    keys: float


def floor_beneath(weights: Tensor, reference: Tensor) -> Floor:
    """The floor that applies to a matrix, judged by what it is: its numerical rank, and where it is zero.

    No matrix with as many non-zeros in each row is closer to the reference than the one that keeps the row's largest
    entries, and no matrix of its rank than the truncated singular value decomposition. Where both hold the higher one
    counts.

    Args:
        weights: ``[n, n]``, finite.
        reference: ``[n, n]``, finite.
    """
    n, keys = weights.shape[-1], (weights != 0).sum(-1)
    by_keys = float(oracle_keys_error(reference, keys)) if (keys < n).any() else 0.0
    rank, by_rank = None, 0.0
    if int(keys.sum()) >= DENSE * n * n:
        values = singular_values(weights)
        rank = int(rank_of(values, weights.dtype))
        if rank < n:
            tails = tails_of(singular_values(reference))
            # What lies beyond the numerical rank is small but not nothing: it may come that much closer.
            by_rank = max(float(tails[rank] - tails_of(values)[rank]), 0.0) / (float(tails[0]) or 1.0)
    return Floor(
        error=max(by_rank, by_keys),
        kind="rank" if by_rank > by_keys else "keys" if by_keys > 0 else "",
        rank=rank,
        keys=float(keys.double().mean()),
    )
