"""The exponential's Taylor series as products of features: 1, the entries, and their products in pairs.

With ``x = y·z`` for ``y = q / d^¼`` and ``z = k / d^¼`` the square is ``Σ_ab (y_a y_b)(z_a z_b)``: products of pairs of
entries are features. The pair (a, b) equals (b, a), so one of the two is enough, where ``a ≠ b`` counts twice and
``a = b`` once; with the half before the square that is 1 and ½, of which each side takes the root.

The number of features, ``1 + d + d (d + 1) / 2``, is far above n in practice: they exist for one block of tokens at a
time.
"""

import math

import torch
from torch import Tensor

from attention_core.ops.softmax.masked import widened

BLOCK = 256
"""Tokens whose features exist at once: enough of them that products and calls reach full speed."""


def width(d: int, order: int = 2) -> int:
    """Number of features C up to an order of 1 or 2."""
    return 1 + d + (d * (d + 1) // 2 if order == 2 else 0)


def monomials(x: Tensor, order: int = 2, into: Tensor | None = None) -> Tensor:
    """1, the entries of ``x / d^¼`` and, to second order, their products in pairs, ``[..., C, n]``.

    Args:
        x: ``[..., n, d]``.
        order: 1 or 2.
        into: where to write them, ``[..., C, n]`` or longer, which spares fresh memory; no gradient passes then.
    """
    y = (widened(x) * x.shape[-1] ** -0.25).mT.contiguous()
    pairs = _pairs(y) if order == 2 else []
    if into is None:
        return torch.cat([torch.ones_like(y[..., :1, :]), y, *((a * b).flatten(-3, -2) for a, b in pairs)], -2)
    d, n = y.shape[-2:]
    into = into[..., :n]
    into[..., :1, :], into[..., 1 : 1 + d, :] = 1.0, y
    rest = into[..., 1 + d :, :]
    for a, b in pairs:
        shape = b.shape[-3:-1]
        place, rest = rest.tensor_split([math.prod(shape)], -2)
        torch.mul(a, b, out=place.unflatten(-2, shape))
    return into


def _pairs(y: Tensor) -> list[tuple[Tensor, Tensor]]:
    """What to multiply, ``[..., s, a, n]`` each, so that every two of the entries ``[..., d, n]`` meet once.

    They meet by how far apart they stand on a circle: turned by s places the entries meet themselves all at once, and
    all turns are one product. Half way round an even d each pair would meet twice.
    """
    d = y.shape[-2]
    turned = torch.cat([y, y], -2).unfold(-2, d, 1).mT  # entry a + s at [..., s, a, :]
    y = y.unsqueeze(-3)
    pairs = [(y * math.sqrt(0.5), y), (y, turned[..., 1 : (d + 1) // 2, :, :])]
    return pairs if d % 2 else [*pairs, (y[..., : d // 2, :], y[..., d // 2 :, :])]


def add_products(sums: Tensor, features: Tensor, v: Tensor) -> Tensor:
    """``sums + features [v, 1]``, ``[C, d_v + 1]``, in place, for features ``[C, n]`` and values ``[n, d_v]``.

    The ones are added up by themselves: as a column beside 64 others they would make the product a third slower.
    """
    torch.addmm(sums[:, :-1], features, v, out=sums[:, :-1])
    sums[:, -1].add_(features.sum(-1))
    return sums
