"""The exponential's Taylor series as products of features: 1, the entries, and their products in pairs.

With ``x = y·z`` for ``y = q / d^¼`` and ``z = k / d^¼`` the square is ``Σ_ab (y_a y_b)(z_a z_b)``: products of pairs of
entries are features. The pair (a, b) equals (b, a), so ``a <= b`` is enough, where ``a < b`` counts twice and ``a = b``
once; with the half before the square that is 1 and ½. These factors go on the sums over the keys, not on the features.

The number of features, ``1 + d + d (d + 1) / 2``, is far above n in practice: they exist for one block of tokens at a
time.
"""

import torch
from torch import Tensor

from attention_core.algorithms.masked import widened

BLOCK = 256
"""Tokens whose features exist at once: enough of them that products and calls reach full speed."""


def width(d: int, order: int = 2) -> int:
    """Number of features C up to an order of 1 or 2."""
    return 1 + d + (d * (d + 1) // 2 if order == 2 else 0)


def monomials(x: Tensor, order: int = 2, into: Tensor | None = None) -> Tensor:
    """1, the entries of ``x / d^¼`` and, to second order, their products in pairs a <= b, ``[..., C, n]``.

    Args:
        x: ``[..., n, d]``.
        order: 1 or 2.
        into: where to write them, ``[..., C, n]`` or longer, which spares fresh memory; no gradient passes then.
    """
    d = x.shape[-1]
    y = (widened(x) * d**-0.25).mT.contiguous()
    firsts = y.split(1, -2) if order == 2 else ()
    if into is None:
        pairs = (first * y[..., a:, :] for a, first in enumerate(firsts))
        return torch.cat([torch.ones_like(y[..., :1, :]), y, *pairs], -2)
    into = into[..., : x.shape[-2]]
    into[..., :1, :], into[..., 1 : 1 + d, :] = 1.0, y
    places = into[..., 1 + d :, :].split([d - a for a in range(len(firsts))], -2) if firsts else ()
    for a, (first, place) in enumerate(zip(firsts, places, strict=True)):
        torch.mul(first, y[..., a:, :], out=place)
    return into


def factors(d: int, like: Tensor, order: int = 2) -> Tensor:
    """How often each product of monomials counts in ``1 + x + x²/2``, ``[C, 1]``: a = b half as often as the others."""
    a, b = torch.triu_indices(d, d)
    squares = torch.where(a == b, 0.5, 1.0)
    return torch.cat([torch.ones(1 + d), *([squares] if order == 2 else [])]).to(like).unsqueeze(-1)
