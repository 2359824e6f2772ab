"""Scaled scores and softmax over the allowed pairs: the readable definition every faster form is held equal to."""

import math

import torch
from torch import Tensor


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Logits ``q kᵀ / √d``, ``[..., n, n]``."""
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


def distances(n: int, device: torch.device | None = None) -> Tensor:
    """``i - j`` for query i and key j, whole numbers ``[n, n]``."""
    position = torch.arange(n, device=device)
    return position[:, None] - position


def causal_mask(n: int, device: torch.device | None = None) -> Tensor:
    """``bool [n, n]``, true where key j is not later than query i."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


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
