"""How spread out a row of attention is: its entropy, and its sparsity."""

import math

import torch
from torch import Tensor


def distribution(weights: Tensor) -> Tensor:
    """Each row of ``|A|`` divided by its sum, ``[..., n, n]`` float64: how its mass is spread, signs and totals aside.

    A row without any mass stays zero.
    """
    mass = weights.double().abs()
    total = mass.sum(-1, keepdim=True)
    return mass / torch.where(total > 0, total, 1.0)


def entropy(weights: Tensor, base: float | None = None) -> Tensor:
    """Entropy of each row, ``[..., n]`` float64: 0 where one key has all the mass, log n where all have the same.

    Taken of the row's ``distribution``, so that signed and unnormalised rows have one too; a zero row has 0.

    Args:
        weights: ``[..., n, n]``.
        base: base of the logarithm: None for nats, 2 for bits.
    """
    nats = entropy_of(distribution(weights))
    return nats if base is None else nats / math.log(base)


def entropy_of(shares: Tensor) -> Tensor:
    """Entropy of rows that are a ``distribution`` already, ``[..., n]`` float64, in nats."""
    return torch.special.entr(shares).sum(-1)


def sparsity(weights: Tensor, seen: Tensor | None = None) -> Tensor:
    """``S = E|a| / √(E a²)`` of each row, ``[..., n]`` float64: the lower, the sparser.

    It is 1 where all keys weigh alike and ``1/√n`` where one of n has all. Neither signs nor a row's total count; a
    zero row has 0. Source: Su 2023, https://kexue.fm/archives/9889.

    Args:
        weights: ``[..., n, n]``.
        seen: how many keys each query may see, broadcastable to ``[..., n]``: those it may not see are no part of the
            means; None for all.
    """
    keys = weights.new_tensor(weights.shape[-1], dtype=torch.float64) if seen is None else seen.double()
    total, length = (torch.linalg.vector_norm(weights, order, -1, dtype=torch.float64) for order in (1, 2))
    return total / (torch.where(length > 0, length, 1.0) * keys.sqrt())
