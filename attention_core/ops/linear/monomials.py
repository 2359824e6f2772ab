"""Features whose products give exp's Taylor series to order 2: 1, a vector's entries, and products of two entries.

With ``x = y·z`` for ``y = q / d^¼`` and ``z = k / d^¼``, the square is ``x² = Σ_ab (y_a y_b)(z_a z_b)``, so the
products ``y_a y_b`` and ``z_a z_b`` are features. The pairs (a, b) and (b, a) give equal products and share one
feature. In ``x²/2``, the term ``y_a y_b z_a z_b`` has the factor 1 if ``a ≠ b`` and ½ if ``a = b``. The features of
query and key are each multiplied by the square root of that factor.

The number of features, ``1 + d + d (d + 1) / 2``, is often larger than n, so features exist for one block of tokens
at a time.
"""

import math

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import with_ones
from attention_core.ops.softmax.masked import at_least_float32

BLOCK = 256
"""Tokens whose features exist at the same time: enough for products to reach full speed."""


def feature_count(d: int, order: int = 2) -> int:
    """Return the number of features C up to order 1 or 2."""
    return 1 + d + (d * (d + 1) // 2 if order == 2 else 0)


def monomials(x: Tensor, order: int = 2, buffer: Tensor | None = None) -> Tensor:
    """Return 1, the entries of ``x / d^¼`` and, at order 2, their products (squares times √½), ``[..., C, n]``.

    Args:
        x: ``[..., n, d]``.
        order: 1 or 2.
        buffer: the tensor to write to, ``[..., C, n]`` or longer, which saves an allocation; it passes no gradient.
    """
    y = (at_least_float32(x) * x.shape[-1] ** -0.25).mT.contiguous()
    pairs = _pairs(y) if order == 2 else []
    if buffer is None:
        return torch.cat([torch.ones_like(y[..., :1, :]), y, *((a * b).flatten(-3, -2) for a, b in pairs)], -2)
    d, n = y.shape[-2:]
    buffer = buffer[..., :n]
    buffer[..., :1, :], buffer[..., 1 : 1 + d, :] = 1.0, y
    rest = buffer[..., 1 + d :, :]
    for a, b in pairs:
        shape = b.shape[-3:-1]
        target, rest = rest.tensor_split([math.prod(shape)], -2)
        torch.mul(a, b, out=target.unflatten(-2, shape))
    return buffer


def _pairs(y: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return pairs of tensors whose elementwise products hold each product of two entries of y, ``[..., d, n]``, once.

    The tensors are ``[..., s, a, n]`` or broadcast to it: entry a is multiplied by entry a + s modulo d, for all
    shifts s from 1 to below d / 2. For even d, the shift d / 2 would give each product twice, so only half of it is
    used. The squares have the factor √½.
    """
    d = y.shape[-2]
    shifted = torch.cat([y, y], -2).unfold(-2, d, 1).mT  # [..., s, a, :] holds entry a + s modulo d
    y = y.unsqueeze(-3)
    pairs = [(y * math.sqrt(0.5), y), (y, shifted[..., 1 : (d + 1) // 2, :, :])]
    return pairs if d % 2 else [*pairs, (y[..., : d // 2, :], y[..., d // 2 :, :])]


def empty_sums(q: Tensor, v: Tensor, order: int = 2) -> Tensor:
    """Return the zeros from which ``update_state`` starts, ``[..., C, d_v + 1]``, for one token's q and v."""
    *lead, d_v = v.shape
    return at_least_float32(v).new_zeros(*lead, feature_count(q.shape[-1], order), d_v + 1)


def update_state(
    sums: Tensor, k: Tensor, v: Tensor, order: int = 2, buffer: Tensor | None = None
) -> tuple[None, Tensor]:
    """Add a block of keys and values to the sums ``Σ_j φ(k_j) [v_j, 1]ᵀ``; return None as outputs, and the new sums.

    φ is ``monomials``, and the sums are ``[..., C, d_v + 1]``. With ``buffer``, the sums of one head,
    ``[C, d_v + 1]``, are changed in place. Their last column is then computed separately: as one more column next
    to 64 others, it would make the product a third slower.
    """
    features, v = monomials(k, order, buffer), at_least_float32(v)
    if buffer is None:
        return None, sums + features @ with_ones(v)
    torch.addmm(sums[:, :-1], features, v, out=sums[:, :-1])
    sums[:, -1].add_(features.sum(-1))
    return None, sums
