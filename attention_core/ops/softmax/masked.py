"""The steps of attention with an explicit matrix: scores, positions, masks, softmax over the allowed pairs, row sums.

The short definitions of the variants, with which tests compare the fast algorithms, use these functions.
"""

import math

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Return a float32 copy of a float16 or bfloat16 tensor, and any other tensor unchanged.

    Sums over many tokens and inverses need the precision of float32.
    """
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Compute the logits ``q kᵀ / √d``, ``[..., n, n]``."""
    return (q @ k.transpose(-1, -2)).div_(math.sqrt(q.shape[-1]))


def distances(n: int, device: torch.device | None = None) -> Tensor:
    """Return ``i - j`` for query i and key j, whole numbers ``[n, n]``."""
    position = torch.arange(n, device=device)
    return position[:, None] - position


def positions(n: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Return the positions i of queries, ``[n, 1]``, and j of keys, ``[1, n]``, counted from 0."""
    position = torch.arange(n, device=device)
    return position[:, None], position[None, :]


def pixel_offsets(n: int, columns: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Return by how many rows and by how many columns query i and key j are apart in an image, ``[n, n]`` each.

    Args:
        n: number of pixels, which are numbered row by row.
        columns: number of columns of the image; 0 for a text, which is one row.
        device: where the numbers are stored.
    """
    i, j = positions(n, device)
    columns = columns or n
    return i // columns - j // columns, i % columns - j % columns


def causal_mask(n: int, device: torch.device | None = None) -> Tensor:
    """Return ``bool [n, n]``, true where key j is not later than query i."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def visible_pairs(q: Tensor, *, causal: bool) -> Tensor | None:
    """Return the causal mask, ``bool [n, n]``, for queries ``[..., n, d]``; None if all pairs are visible."""
    return causal_mask(q.shape[-2], q.device) if causal else None


def key_counts(k: Tensor, *, causal: bool) -> Tensor:
    """Return n_i, the number of keys visible to each query, float64 ``[n, 1]``, or ``[1, 1]`` if all are equal."""
    n = k.shape[-2]
    return torch.arange(1 if causal else n, n + 1, dtype=torch.float64, device=k.device).unsqueeze(-1)


def masked_softmax(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Compute softmax over the pairs of the last axis where ``mask`` is true; a row without such pairs is zero.

    Args:
        logits: ``[..., n, n]``.
        mask: ``bool``, broadcastable to the logits; None allows every pair.
    """
    if mask is None:
        return logits.softmax(-1)
    # Softmax of a row with -inf only would give NaN, forward and backward. A query without any allowed key is therefore
    # computed without its mask, and its weights are then set to zero.
    empty_row = ~mask.any(-1, keepdim=True)
    return logits.masked_fill(~mask & ~empty_row, -math.inf).softmax(-1).masked_fill(empty_row, 0.0)


def top_k_mask(x: Tensor, count: int) -> Tensor:
    """Mark the ``count`` largest entries along the last axis, ``bool``; of equal entries the earlier ones."""
    order = x.argsort(dim=-1, descending=True, stable=True)
    return torch.zeros_like(x, dtype=torch.bool).scatter(-1, order[..., :count], True)


def normalise_rows(similarity: Tensor) -> Tensor:
    """Divide each row by its sum, ``[..., n, n]``; a row whose sum is zero is unchanged."""
    return similarity / safe_divisor(similarity.sum(-1, keepdim=True))


def safe_divisor(x: Tensor) -> Tensor:
    """Return ``x`` with ones in place of zeros, as a divisor."""
    return torch.where(x == 0, 1.0, x)
