"""How spread out a row of attention is."""

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
    nats = torch.special.entr(distribution(weights)).sum(-1)
    return nats if base is None else nats / math.log(base)
