"""Metrics of attention matrices and outputs (torch tensors), and of the agreement between two rankings of items.

Shapes: matrices ``[..., n, n]``, outputs ``[..., n, d_v]``, numbers per row ``[..., n]``, numbers per matrix
``[...]``. Metrics of tensors are computed and returned in float64, regardless of the type of their inputs.

Example:
    >>> import torch
    >>> from attention_core import metrics
    >>> metrics.entropy(torch.full((4, 4), 0.25), base=2)
    tensor([2., 2., 2., 2.], dtype=torch.float64)

One matrix:
    >>> a, signed = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[1.0, -3.0]])
    >>> metrics.distribution(signed), metrics.row_sums(signed), metrics.negative_mass(signed).item()
    (tensor([[0.2500, 0.7500]], dtype=torch.float64), tensor([-2.], dtype=torch.float64), 0.75)
    >>> metrics.sparsity(a), metrics.density(a).item(), metrics.mean_distance(a).item()
    (tensor([0.7071, 1.0000], dtype=torch.float64), 0.75, 0.25)
    >>> identity = torch.eye(2)
    >>> metrics.singular_values(identity), metrics.rank(identity).item(), round(metrics.effective_rank(a).item(), 2)
    (tensor([1., 1.], dtype=torch.float64), 2.0, 1.8)
    >>> metrics.Ranks.of(identity)
    Ranks(rank=2.0, effective_rank=2.0)

A matrix and its reference:
    >>> uniform = torch.full((2, 2), 0.5)
    >>> metrics.total_variation(a, uniform), metrics.wrong_mass(a, uniform).item()
    (tensor([0.5000, 0.0000], dtype=torch.float64), 0.25)
    >>> metrics.kl_divergence(a, uniform), metrics.top_k_overlap(a, uniform, k=1)
    (tensor([0.6931, 0.0000], dtype=torch.float64), tensor([0.5000, 1.0000], dtype=torch.float64))
    >>> [round(each(a, uniform).item(), 2) for each in (metrics.relative_error, metrics.cosine)]
    [0.71, 0.85]

The error of uniform attention, and the smallest error of a matrix with a given rank or number of keys per row:
    >>> round(metrics.uniform_error(a).item(), 2), round(metrics.truncated_svd_error(identity, 1).item(), 2)
    (0.58, 0.71)
    >>> metrics.truncated_svd_errors(identity), metrics.oracle_top_k_errors(uniform)
    (tensor([1.0000, 0.7071, 0.0000], dtype=torch.float64), tensor([1.0000, 0.7071, 0.0000], dtype=torch.float64))
    >>> metrics.oracle_top_k_error(uniform, 2).item(), metrics.oracle_keys_error(uniform, torch.tensor([1, 2])).item()
    (0.0, 0.5)

How well two lists order the same items: correlations, the item with the largest difference of ranks, and pairs:
    >>> x, y = [1, 2, 3], [1, 3, 2]
    >>> round(metrics.rank_correlation(x, y), 2), round(metrics.kendall(x, y), 2), metrics.farthest_off(x, y)
    (0.5, 0.33, 1)
    >>> metrics.same_order(x, y, groups="abc")
    (2, 3)
"""

from attention_core.metrics.approximation import (
    cosine,
    kl_divergence,
    oracle_keys_error,
    oracle_top_k_error,
    oracle_top_k_errors,
    relative_error,
    top_k_overlap,
    total_variation,
    uniform_error,
    wrong_mass,
)
from attention_core.metrics.entropy import distribution, entropy, sparsity
from attention_core.metrics.passport import Passport, Ranks, density, mean_distance, negative_mass, passport, row_sums
from attention_core.metrics.ranks import farthest_off, kendall, rank_correlation, same_order
from attention_core.metrics.spectrum import (
    effective_rank,
    rank,
    singular_values,
    truncated_svd_error,
    truncated_svd_errors,
)

__all__ = [
    "Passport",
    "Ranks",
    "cosine",
    "density",
    "distribution",
    "effective_rank",
    "entropy",
    "farthest_off",
    "kendall",
    "kl_divergence",
    "mean_distance",
    "negative_mass",
    "oracle_keys_error",
    "oracle_top_k_error",
    "oracle_top_k_errors",
    "passport",
    "rank",
    "rank_correlation",
    "relative_error",
    "row_sums",
    "same_order",
    "singular_values",
    "sparsity",
    "top_k_overlap",
    "total_variation",
    "truncated_svd_error",
    "truncated_svd_errors",
    "uniform_error",
    "wrong_mass",
]
