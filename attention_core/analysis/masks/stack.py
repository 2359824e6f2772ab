"""How far information gets in a stack of patterns."""

from collections.abc import Sequence

import numpy as np
import torch

from attention_core.compact_repr import CompactRepr
from attention_core.metrics.reachability import first_layers, reached_shares, smallest_depth


class Reach(CompactRepr):
    """How far a stack reaches.

    Attributes:
        first: after which layer query i first holds something of token j, ``int16 [n, n]``; 0 itself, -1 not within.
        shares: share of the possible pairs connected after 0, 1, ... layers.
        complete: the smallest depth that connects every pair if the stack goes on; None: it never does.
    """

    first: np.ndarray
    shares: tuple[float, ...]
    complete: int | None


def reach(stack: Sequence[np.ndarray], depth: int, *, causal: bool) -> Reach:
    """Follow a stack that repeats its layers until it is deep enough.

    Args:
        stack: one round of layers, ``bool [n, n]`` each, the first layer first; at least one.
        depth: layers to follow.
        causal: whether no layer looks ahead.
    """
    layers = [torch.tensor(layer) for layer in stack]
    first = first_layers(layers, depth)
    shares = reached_shares(first, depth, causal=causal)
    connected = shares[-1] == 1
    return Reach(
        first=first.numpy(),
        shares=shares,
        complete=max(1, int(first.max())) if connected else smallest_depth(layers, causal=causal),
    )
