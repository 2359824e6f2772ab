"""The similarities of each query with the keys up to its own position, exact for references of any size."""

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.features import Features

SPREAD = 40.0
"""Largest rise for which one reference serves all tokens: e⁴⁰ times a sum of features still fits float32."""


def triangle(f: Features, before: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``Σ_f q_if e^{R_jf - R_if} k_jf`` for ``j <= i``, zero above, ``[..., n, n]``, and scaled features.

    Args:
        f: features of n tokens.
        before: the reference before the first token, ``[..., 1, C]``, finite; None means that of the first token.

    Returns:
        The triangle; the queries relative to the state before the first token, ``q_i e^{before - R_i}``; the keys
        relative to the state after the last token, ``k_j e^{R_j - R_last}``.
    """
    if f.reference is None:
        return (f.q @ f.k.mT).tril_(), f.q, f.k
    first, last = f.reference[..., :1, :], f.reference[..., -1:, :]
    q = f.q * ((first if before is None else before) - f.reference).exp()
    k = f.k * (f.reference - last).exp()
    if f.reference.shape[-1] == 1:
        # One reference per token is common to all features, so its factor can multiply each pair after the sum.
        fade = (f.reference.mT - f.reference).clamp_(max=0)
        fade = (
            fade.exp().tril() if fade.requires_grad else fade.exp_().tril_()
        )  # autograd does not allow this in-place change
        return (f.q @ f.k.mT).mul_(fade), q, k
    if rises_far(first, last):
        return _by_squares(f), q, k
    return ((f.q * (last - f.reference).exp()) @ k.mT).tril_(), q, k


def rises_far(first: Tensor, last: Tensor) -> bool:
    """Return whether references rise so far that no single reference can serve all tokens between them."""
    return not first.is_meta and bool((last - first).max() > SPREAD)  # meta tensors have no numbers


def _by_squares(f: Features) -> Tensor:
    """Return the triangle for references that jump, so no single reference serves all queries and keys.

    Blocks double in size, starting from single tokens. In each pair of blocks, the keys of the first block and the
    queries of the second block are scaled relative to the end of the first block. Their product fills one square below
    the diagonal. Every exponent is at most zero and at least that of the product, so nothing overflows or underflows.
    """
    assert f.reference is not None
    n = f.q.shape[-2]
    missing = (1 << (n - 1).bit_length()) - n
    # Pad to a power of two: references by their last value, features by zeros.
    ends = torch.cat([f.reference, f.reference[..., -1:, :].expand(*f.reference.shape[:-2], missing, -1)], -2)
    starts = torch.cat([ends[..., :1, :], ends[..., :-1, :]], -2)
    q, k = F.pad(f.q, (0, 0, 0, missing)), F.pad(f.k, (0, 0, 0, missing))
    result = torch.diag_embed((q * k).sum(-1))
    q = q * (starts - ends).exp()
    half = 1
    while half < n:
        # [..., pairs, 2, half, C]: queries of the second halves meet keys of the first.
        q, k = q.unflatten(-2, (-1, 2, half)), k.unflatten(-2, (-1, 2, half))
        squares = result.unflatten(-2, (-1, 2, half)).unflatten(-1, (-1, 2, half))[..., :, 1, :, :, 0, :]
        squares.diagonal(dim1=-4, dim2=-2).copy_((q[..., 1, :, :] @ k[..., 0, :, :].mT).movedim(-3, -1))
        # [..., pairs, 2, C]: the references before and at the end of each half become those of the pair.
        starts, ends = starts.unflatten(-2, (-1, 2)), ends.unflatten(-2, (-1, 2))
        q = (q * (starts[..., :1, :] - starts).exp().unsqueeze(-2)).flatten(-4, -2)
        k = (k * (ends - ends[..., 1:, :]).exp().unsqueeze(-2)).flatten(-4, -2)
        starts, ends = starts[..., 0, :], ends[..., 1, :]
        half *= 2
    return result[..., :n, :n]
