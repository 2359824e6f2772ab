"""Metrics that compare attention matrices and outputs with a reference, such as softmax.

The module also computes the lowest error of any matrix with k non-zeros per row, and the error of uniform attention.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.errors import InputError, ShapeError
from attention_core.metrics.entropy import distribution, distribution_entropy


def relative_error(a: Tensor, reference: Tensor) -> Tensor:
    """Compute ``‖a − b‖ / ‖b‖`` with Frobenius norms over the last two axes, ``[...]`` float64; b is the reference.

    If b is zero, the error is 0 for a zero ``a`` and infinite otherwise.

    Raises:
        ShapeError: if the last two axes differ.
    """
    if a.shape[-2:] != reference.shape[-2:]:
        raise ShapeError(
            "The shapes {a} and {b} do not match. Compare matrices of one shape.",
            a=tuple(a.shape),
            b=tuple(reference.shape),
        )
    norm = torch.linalg.matrix_norm(reference, dtype=torch.float64)
    return safe_ratio(torch.linalg.matrix_norm(a.double() - reference), norm)


def cosine(a: Tensor, reference: Tensor) -> Tensor:
    """Compute the cosine between rows of two outputs ``[..., n, d_v]``, averaged over rows, ``[...]`` float64.

    Two zero rows count as 1; a zero row and a non-zero row count as 0.
    """
    a, reference = a.double(), reference.double()
    norm_a, norm_b = torch.linalg.vector_norm(a, dim=-1), torch.linalg.vector_norm(reference, dim=-1)
    rows = torch.where(norm_a * norm_b == 0, (norm_a == norm_b).double(), (a * reference).sum(-1) / (norm_a * norm_b))
    return rows.mean(-1)


def total_variation(a: Tensor, reference: Tensor) -> Tensor:
    """Compute ``½ Σ_j |a_ij − b_ij|`` of each row, not normalised first, ``[..., n]`` float64; b is the reference.

    For rows that sum to one this is the mass on the wrong keys, from 0 to 1. Signed rows may exceed 1.
    """
    return torch.linalg.vector_norm(a.double() - reference, 1, -1) / 2


def wrong_mass(a: Tensor, reference: Tensor) -> Tensor:
    """Compute the total variation averaged over rows, ``[...]`` float64: the share of mass on the wrong keys."""
    return total_variation(a, reference).mean(-1)


def kl_divergence(a: Tensor, reference: Tensor) -> Tensor:
    """Compute ``KL(a ‖ b) = Σ_j a_ij log(a_ij / b_ij)`` of each row in nats, ``[..., n]`` float64.

    Both rows are first normalised by ``distribution``, so signed and unnormalised rows have a divergence too. It is
    infinite if ``a`` has mass on a key where the reference has none, or if exactly one of the two rows is zero.
    """
    return distribution_kl(distribution(a), distribution(reference))


def distribution_kl(p: Tensor, r: Tensor, entropy: Tensor | None = None) -> Tensor:
    """Compute ``kl_divergence``, ``[..., n]`` float64, of rows that ``distribution`` has already normalised.

    Args:
        p: ``[..., n, n]``.
        r: the reference, ``[..., n, n]``.
        entropy: entropy of the rows of p, ``[..., n]``, if already known.
    """
    # A term p log r with p = 0 is 0 for every r, also for r = 0, whose logarithm is infinite. The divergence is clamped
    # because rounding may leave it slightly below zero.
    terms = r.log().masked_fill_((p == 0) & ~r.isnan(), 0.0).mul_(p)
    divergence = (-terms.sum(-1) - (distribution_entropy(p) if entropy is None else entropy)).clamp_min(0.0)
    is_infinite = (p.sum(-1) == 0) & (r.sum(-1) > 0)
    return divergence.masked_fill(is_infinite, torch.inf)


def top_k_overlap(a: Tensor, b: Tensor, k: int) -> Tensor:
    """Compute the share of the k heaviest keys that two rows have in common, ``[..., n]`` float64, from 0 to 1.

    The heaviest keys of a row are its k largest positive weights and all weights tied with the k-th. The number of
    common keys is divided by the size of the larger set, so that a uniform row (all n tied) scores k/n, not a value
    that depends on tie-breaking. If neither row has positive weights, the overlap is 1.

    Args:
        a: ``[..., n, n]``.
        b: ``[..., n, n]``.
        k: keys per row, at least 1; values above n mean all keys.
    """
    heavy_a, heavy_b = _is_heaviest(a, k), _is_heaviest(b, k)
    size = torch.maximum(heavy_a.sum(-1), heavy_b.sum(-1))
    return torch.where(size > 0, (heavy_a & heavy_b).sum(-1).double() / size, 1.0)


def oracle_top_k_errors(reference: Tensor) -> Tensor:
    """Compute the lowest relative error of any matrix with k non-zeros per row, k = 0 .. n, ``[..., n + 1]`` float64.

    The best such matrix keeps the k entries of each row with the largest absolute values, unchanged. All errors come
    from one sort of ``reference``, ``[..., n, n]``.
    """
    squares = _dropped_squares(reference).sum(-2)
    return safe_ratio(squares.sqrt(), squares[..., :1].sqrt())


def oracle_top_k_error(reference: Tensor, k: int) -> Tensor:
    """Compute the lowest relative error of any matrix with k non-zeros per row, ``[...]`` float64; 0 for k >= n.

    Raises:
        InputError: if k is negative.
    """
    return error_at(oracle_top_k_errors(reference), k)


def error_at(errors: Tensor, count: int) -> Tensor:
    """Return the error for ``count`` keys or ranks, from the errors for 0 to n of them, ``[..., n + 1]``.

    A larger count is treated as n.

    Raises:
        InputError: if the number is negative.
    """
    if count < 0:
        raise InputError("The number of keys or ranks is {count}. Choose at least 0.", count=count)
    return errors[..., min(count, errors.shape[-1] - 1)]


def oracle_keys_error(reference: Tensor, keys: Tensor) -> Tensor:
    """Compute the lowest relative error of any matrix with ``keys[..., i]`` non-zeros in row i, ``[...]`` float64.

    Args:
        reference: ``[..., n, n]``.
        keys: ``int64 [..., n]``, from 0 to n.
    """
    squares = _dropped_squares(reference)
    dropped = squares.gather(-1, keys[..., None])[..., 0].sum(-1)
    return safe_ratio(dropped.sqrt(), squares[..., 0].sum(-1).sqrt())


def uniform_error(reference: Tensor, *, causal: bool = False) -> Tensor:
    """Compute the relative error of uniform attention, the mean of v, ``[...]`` float64: a baseline for other errors.

    Args:
        reference: ``[..., n, n]``.
        causal: whether row i is uniform over keys 0..i only.
    """
    n = reference.shape[-1]
    allowed = torch.ones(n, n, dtype=torch.float64, device=reference.device)
    return relative_error(distribution(allowed.tril() if causal else allowed).expand_as(reference), reference)


def safe_ratio(part: Tensor, whole: Tensor) -> Tensor:
    """Return ``part / whole``, but 0 for 0/0 and infinity for any other part over 0."""
    return torch.where(part == 0, 0.0, part / whole)


def _is_heaviest(weights: Tensor, k: int) -> Tensor:
    k = min(k, weights.shape[-1])
    values = weights.detach().cpu()
    if values.dtype.itemsize < torch.float32.itemsize:
        values = values.float()  # numpy has no bfloat16
    # np.partition finds the k-th largest entry without sorting the other entries, in a fifth of the time of torch's
    # topk.
    kth_largest = np.partition(values.numpy(), -k, -1)[..., -k, None]
    return (weights >= torch.from_numpy(kth_largest).to(weights)) & (weights > 0)


def _dropped_squares(reference: Tensor) -> Tensor:
    """Sum the squares of each row's entries except the k largest, for every k = 0 .. n: ``[..., n, n + 1]``."""
    return F.pad(reference.double().square().sort(-1).values.cumsum(-1), (1, 0)).flip(-1)
