"""How far one matrix or output is from another, and the floors and the zero that such errors stand between."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.metrics.entropy import distribution, entropy_of


def relative_error(a: Tensor, reference: Tensor) -> Tensor:
    """``‖a − b‖ / ‖b‖`` in the Frobenius norm over the last two axes, ``[...]`` float64; for matrices or outputs.

    Beside a zero reference it is 0 for a zero ``a`` and infinite for any other.
    """
    size = torch.linalg.matrix_norm(reference, dtype=torch.float64)
    return ratio(torch.linalg.matrix_norm(a.double() - reference), size)


def cosine(a: Tensor, reference: Tensor) -> Tensor:
    """Mean over rows of the cosine between the rows of two outputs ``[..., n, d_v]``, ``[...]`` float64.

    Two zero rows count as 1, a zero row beside any other as 0.
    """
    a, reference = a.double(), reference.double()
    size, other = torch.linalg.vector_norm(a, dim=-1), torch.linalg.vector_norm(reference, dim=-1)
    rows = torch.where(size * other == 0, (size == other).double(), (a * reference).sum(-1) / (size * other))
    return rows.mean(-1)


def total_variation(a: Tensor, reference: Tensor) -> Tensor:
    """``½ Σ_j |a_ij − b_ij|`` of each row as it stands, ``[..., n]`` float64.

    For rows that sum to one it is the mass that sits on other keys, from 0 to 1; signed rows may exceed 1.
    """
    return torch.linalg.vector_norm(a.double() - reference, 1, -1) / 2


def wrong_mass(a: Tensor, reference: Tensor) -> Tensor:
    """Total variation averaged over rows, ``[...]`` float64: the share of mass on the wrong keys."""
    return total_variation(a, reference).mean(-1)


def kl_divergence(a: Tensor, reference: Tensor) -> Tensor:
    """``KL(a ‖ b) = Σ_j a_ij log(a_ij / b_ij)`` of each row in nats, ``[..., n]`` float64.

    Taken between the rows' ``distribution``s, so that signed and unnormalised rows have one too. Infinite where ``a``
    has mass on a key to which the reference gives none, and where just one of the two rows is zero.
    """
    return kl_of(distribution(a), distribution(reference))


def kl_of(p: Tensor, r: Tensor, entropy: Tensor | None = None) -> Tensor:
    """``kl_divergence`` of rows that are a ``distribution`` already, ``[..., n]`` float64.

    Args:
        p: ``[..., n, n]``.
        r: ``[..., n, n]``.
        entropy: that of p's rows, ``[..., n]``, where it is known.
    """
    # Where p is 0 its term is 0, whatever r is; rounding may leave a sum a little below zero.
    terms = r.log().masked_fill_((p == 0) & ~r.isnan(), 0.0).mul_(p)
    divergence = (-terms.sum(-1) - (entropy_of(p) if entropy is None else entropy)).clamp_min(0.0)
    lost = (p.sum(-1) == 0) & (r.sum(-1) > 0)
    return divergence.masked_fill(lost, torch.inf)


def top_k_overlap(a: Tensor, b: Tensor, k: int) -> Tensor:
    """Share of their k heaviest keys that two rows have in common, ``[..., n]`` float64, from 0 to 1.

    A row's heaviest keys are its k largest positive weights, ties with the k-th included; the common ones are divided
    by the larger of the two sets, so that a uniform row (all n tied) scores k/n and not by luck. Two rows without
    positive weights agree.

    Args:
        a: ``[..., n, n]``.
        b: ``[..., n, n]``.
        k: keys per row, at least 1; more than n means all.
    """
    heavy_a, heavy_b = _heaviest(a, k), _heaviest(b, k)
    size = torch.maximum(heavy_a.sum(-1), heavy_b.sum(-1))
    return torch.where(size > 0, (heavy_a & heavy_b).sum(-1).double() / size, 1.0)


def oracle_top_k_errors(reference: Tensor) -> Tensor:
    """The relative error no matrix with k non-zeros per row can beat, for every k = 0 .. n, ``[..., n + 1]`` float64.

    From one sort of ``reference``, ``[..., n, n]``: the best such matrix keeps each row's k largest entries by absolute
    value, at their own values.
    """
    squares = _dropped_squares(reference).sum(-2)
    return ratio(squares.sqrt(), squares[..., :1].sqrt())


def oracle_top_k_error(reference: Tensor, k: int) -> Tensor:
    """The relative error that no matrix with k non-zeros per row can beat, ``[...]`` float64; n or more leaves none."""
    return oracle_top_k_errors(reference)[..., min(k, reference.shape[-1])]


def oracle_keys_error(reference: Tensor, keys: Tensor) -> Tensor:
    """The relative error that no matrix with ``keys[..., i]`` non-zeros in row i can beat, ``[...]`` float64.

    Args:
        reference: ``[..., n, n]``.
        keys: ``int64 [..., n]``, from 0 to n.
    """
    squares = _dropped_squares(reference)
    dropped = squares.gather(-1, keys[..., None])[..., 0].sum(-1)
    return ratio(dropped.sqrt(), squares[..., 0].sum(-1).sqrt())


def uniform_error(reference: Tensor, *, causal: bool = False) -> Tensor:
    """Relative error of uniform attention, the plain mean of v, ``[...]`` float64: the zero of every error scale.

    Args:
        reference: ``[..., n, n]``.
        causal: whether row i is uniform over keys 0..i only.
    """
    n = reference.shape[-1]
    allowed = torch.ones(n, n, dtype=torch.float64, device=reference.device)
    return relative_error(distribution(allowed.tril() if causal else allowed).expand_as(reference), reference)


def ratio(part: Tensor, whole: Tensor) -> Tensor:
    """``part / whole`` where no part of nothing is no error: 0/0 is 0, anything else over 0 infinite."""
    return torch.where(part == 0, 0.0, part / whole)


def _heaviest(weights: Tensor, k: int) -> Tensor:
    k = min(k, weights.shape[-1])
    known = weights.detach().cpu()
    if known.dtype.itemsize < torch.float32.itemsize:
        known = known.float()  # numpy has no bfloat16
    # A partition leaves the rest unsorted, and takes a fifth of topk's time.
    least = np.partition(known.numpy(), -k, -1)[..., -k, None]
    return (weights >= torch.from_numpy(least).to(weights)) & (weights > 0)


def _dropped_squares(reference: Tensor) -> Tensor:
    """What each row loses, squared, when only its k largest entries stay, for every k = 0 .. n: ``[..., n, n + 1]``."""
    return F.pad(reference.double().square().sort(-1).values.cumsum(-1), (1, 0)).flip(-1)
