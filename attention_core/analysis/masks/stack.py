"""Computes which pairs of tokens a stack of masked attention layers connects, and after how many layers."""

from collections.abc import Sequence

import numpy as np
import torch

from attention_core.compact_repr import CompactRepr
from attention_core.metrics.reachability import first_layers, reached_shares, smallest_depth


class Reach(CompactRepr):
    """How far information travels through a stack of layers.

    Attributes:
        first: layer after which query i first holds information of token j, ``int16 [n, n]``; 0 for i = j, -1: never.
        shares: share of the possible pairs that are connected after 0, 1, ... layers.
        complete: smallest depth that connects every pair if the stack is repeated; None if this never happens.
    """

    first: np.ndarray
    shares: tuple[float, ...]
    complete: int | None


def two_step_path(first: np.ndarray, second: np.ndarray, query: int) -> tuple[int, int] | None:
    """Return the farthest key that a query reaches only with two layers, and a token that passes its information on.

    Args:
        first: allowed pairs of the first layer, ``bool [n, n]``.
        second: allowed pairs of the second layer, ``bool [n, n]``.
        query: index of the query.

    Returns:
        The indices of the key and of the token between query and key; None if there is no such key.
    """
    n = len(first)
    is_new = (second[query] @ first) & ~(first[query] | second[query] | (np.arange(n) == query))
    if not is_new.any():
        return None
    key = max(np.flatnonzero(is_new).tolist(), key=lambda j: abs(j - query))
    return key, int(np.flatnonzero(second[query] & first[:, key])[0])


def reach(stack: Sequence[np.ndarray], depth: int, *, causal: bool) -> Reach:
    """Compute how far information travels through a stack that is repeated up to a given depth.

    Args:
        stack: one round of layers, ``bool [n, n]`` each, the first layer first; at least one layer.
        depth: total number of layers.
        causal: whether every layer is causal.
    """
    layers = [torch.tensor(layer) for layer in stack]
    first = first_layers(layers, depth)
    shares = reached_shares(first, depth, causal=causal)
    is_complete = shares[-1] == 1
    return Reach(
        first=first.numpy(),
        shares=shares,
        complete=max(1, int(first.max())) if is_complete else smallest_depth(layers, causal=causal),
    )
