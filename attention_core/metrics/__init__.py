"""Metrics of attention matrices and outputs; they take and return torch tensors.

Shapes: matrices ``[..., n, n]``, outputs ``[..., n, d_v]``, numbers per row ``[..., n]``, numbers per matrix ``[...]``.
All metrics are computed and returned in float64, regardless of the type of their inputs.

Example:
    >>> import torch
    >>> import attention_core as ac
    >>> ac.metrics.entropy(torch.full((4, 4), 0.25), base=2)
    tensor([2., 2., 2., 2.], dtype=torch.float64)
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
