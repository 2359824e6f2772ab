"""What explicit matrices are made of: scores, masks, softmax over the allowed pairs, rows over their sum.

The readable definitions every faster form is held equal to.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from attention_core.settings import Params


def widened(x: Tensor) -> Tensor:
    """The tensor itself in float32 or float64; a float32 copy of a float16 or bfloat16 one.

    Sums over many tokens and inverses need the digits.
    """
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Logits ``q kᵀ / √d``, ``[..., n, n]``."""
    return (q @ k.transpose(-1, -2)).div_(math.sqrt(q.shape[-1]))


def distances(n: int, device: torch.device | None = None) -> Tensor:
    """``i - j`` for query i and key j, whole numbers ``[n, n]``."""
    position = torch.arange(n, device=device)
    return position[:, None] - position


def positions(n: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Return the positions i of queries, ``[n, 1]``, and j of keys, ``[1, n]``, counted from 0."""
    position = torch.arange(n, device=device)
    return position[:, None], position[None, :]


def causal_mask(n: int, device: torch.device | None = None) -> Tensor:
    """``bool [n, n]``, true where key j is not later than query i."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def visible(q: Tensor, *, causal: bool) -> Tensor | None:
    """The pairs a causal form allows, ``bool [n, n]``, for queries ``[..., n, d]``; None where all are."""
    return causal_mask(q.shape[-2], q.device) if causal else None


def keys_seen(q: Tensor, *, causal: bool) -> Tensor:
    """n_i, how many keys each query may see, ``[n, 1]`` float64, or ``[1, 1]`` where all see the same."""
    n = q.shape[-2]
    return torch.arange(1 if causal else n, n + 1, dtype=torch.float64, device=q.device).unsqueeze(-1)


def masked_softmax(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last axis restricted to the pairs where ``mask`` is true; a row without any is zero.

    Args:
        logits: ``[..., n, n]``.
        mask: ``bool``, broadcastable to the logits; None allows every pair.
    """
    if mask is None:
        return logits.softmax(-1)
    # A row of -inf would be NaN in both directions of autograd: such a row is computed on zeros, then wiped.
    empty = ~mask.any(-1, keepdim=True)
    return logits.masked_fill(~mask & ~empty, -math.inf).softmax(-1).masked_fill(empty, 0.0)


def among_largest(x: Tensor, count: int) -> Tensor:
    """Mark the ``count`` largest entries along the last axis, ``bool``; of equal entries the earlier ones."""
    order = x.argsort(dim=-1, descending=True, stable=True)
    return torch.zeros_like(x, dtype=torch.bool).scatter(-1, order[..., :count], True)


def rows_over_sum(similarity: Tensor) -> Tensor:
    """Each row divided by its sum, ``[..., n, n]``; a row whose sum is zero stays as it is."""
    return similarity / nonzero(similarity.sum(-1, keepdim=True))


def nonzero(x: Tensor) -> Tensor:
    """``x`` with ones in place of zeros, to divide by."""
    return torch.where(x == 0, 1.0, x)


def product_of(anatomy: Callable[..., dict[str, Tensor]]) -> Callable[..., Tensor]:
    """``weights(q, k, p)`` of a variant whose anatomy has the matrix as factors, ``left @ right``, ``[..., n, n]``."""
    return partial(_product, anatomy)


def _product(anatomy: Callable[..., dict[str, Tensor]], q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    parts = anatomy(q, k, k, p, causal=causal)
    return parts["left"] @ parts["right"]
