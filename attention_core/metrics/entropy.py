"""Metrics of how evenly a query spreads its attention over the keys: entropy and sparsity."""

import math

import torch
from torch import Tensor


def distribution(weights: Tensor) -> Tensor:
    """Return each row of ``|A|`` divided by its sum, ``[..., n, n]`` float64.

    This removes signs and row totals. A zero row stays zero.
    """
    mass = weights.double().abs()
    total = mass.sum(-1, keepdim=True)
    return mass / torch.where(total > 0, total, 1.0)


def entropy(weights: Tensor, base: float | None = None) -> Tensor:
    """Compute the entropy of each row, ``[..., n]`` float64: 0 if one key has all mass, log n for equal weights.

    The entropy is that of the row's ``distribution``, so signed and unnormalised rows have one too. A zero row has 0.

    Args:
        weights: ``[..., n, n]``.
        base: base of the logarithm: None for nats, 2 for bits.
    """
    nats = distribution_entropy(distribution(weights))
    return nats if base is None else nats / math.log(base)


def distribution_entropy(shares: Tensor) -> Tensor:
    """Compute the entropy, ``[..., n]`` float64 in nats, of rows that ``distribution`` has already normalised."""
    return torch.special.entr(shares).sum(-1)


def uniform_entropy(n: float, *, causal: bool) -> float:
    """Return the mean entropy of n uniform rows in nats: log n, or the mean of log 1 to log n if causal."""
    return math.lgamma(n + 1) / n if causal else math.log(n)


def sparsity(weights: Tensor, seen: Tensor | None = None) -> Tensor:
    """Compute ``S = E|a| / √(E a²)`` of each row, ``[..., n]`` float64; lower values mean a sparser row.

    S is 1 if all keys have equal weights, and ``1/√n`` if one of n keys has all the weight. S does not depend on signs
    or on the row's total; a zero row has 0. Source: Su 2023, https://kexue.fm/archives/9889.

    Args:
        weights: ``[..., n, n]``.
        seen: number of keys to which each query may attend, broadcastable to ``[..., n]``; the means are over these
            keys only. None for all keys.
    """
    keys = weights.new_tensor(weights.shape[-1], dtype=torch.float64) if seen is None else seen.double()
    total, length = (torch.linalg.vector_norm(weights, order, -1, dtype=torch.float64) for order in (1, 2))
    return total / (torch.where(length > 0, length, 1.0) * keys.sqrt())
