"""What a matrix looks like: its totals, its signs, its zeros, its distance from the diagonal."""

import torch
from torch import Tensor

from attention_core.metrics.error import ratio


def row_sums(weights: Tensor) -> Tensor:
    """Sum of each row, ``[..., n]`` float64; one wherever the output is a weighted mean of v."""
    return weights.double().sum(-1)


def negative_mass(weights: Tensor) -> Tensor:
    """Share of ``Σ |a_ij|`` on negative entries, ``[...]`` float64, from 0 to 1; 0 for a zero matrix."""
    weights = weights.double()
    return ratio((-weights).clamp_min(0.0).sum((-2, -1)), weights.abs().sum((-2, -1)))


def density(weights: Tensor, *, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """Share of the allowed pairs whose weight is not zero, ``[...]`` float64; 0 where no pair is allowed.

    An entry that underflowed to zero counts as zero.

    Args:
        weights: ``[..., n, n]``.
        causal: whether only pairs with j <= i are allowed.
        mask: ``bool``, broadcastable to the weights, true = allowed; None allows all.
    """
    allowed = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    if causal:
        allowed = allowed.tril()
    return ratio(((weights != 0) & allowed).sum((-2, -1)).double(), allowed.sum((-2, -1)).double())


def mean_distance(weights: Tensor) -> Tensor:
    """Mean of ``|i − j|`` weighted by ``|a_ij|``, ``[...]`` float64, in tokens; 0 for a zero matrix."""
    mass = weights.double().abs()
    position = torch.arange(weights.shape[-1], device=weights.device)
    distance = (position[:, None] - position).abs()
    return ratio((mass * distance).sum((-2, -1)), mass.sum((-2, -1)))
