"""How far a stack of patterns reaches: boolean products, with the residual connection of every layer.

A layer's pattern is ``bool [n, n]``, rows queries, columns keys, true = may look. Through the residual connection each
token also keeps what it already holds, so what is connected stays connected. In ``first`` the first layer counts as 1.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, cycle

import numpy as np
import torch
from torch import Tensor

NEVER = -1
"""In a matrix of first layers: not connected within the layers given."""
SPARSE = 1 / 4
"""Share of the pairs up to which a layer is followed pair by pair; beyond, one product of floats is faster."""
WORD = 64
"""Tokens whose bits stand in one number."""


def product(later: Tensor, earlier: Tensor) -> Tensor:
    """Which token's content reaches which query over two steps, ``bool [n, n]``."""
    # One matrix product of floats; counts up to n are exact and only their being above zero matters.
    return (later.float() @ earlier.float()) > 0


def first_layers(stack: Sequence[Tensor], depth: int) -> Tensor:
    """After which layer query i first holds something of token j, ``int16 [n, n]``; 0 for itself, ``NEVER`` if not.

    Args:
        stack: one round of layers, ``bool [n, n]`` each, the first layer first; at least one.
        depth: layers in all; the stack repeats.
    """
    n = stack[0].shape[-1]
    reached = _packed(np.eye(n, dtype=bool))
    first = np.full((n, n), NEVER, dtype=np.int16)
    np.fill_diagonal(first, 0)
    idle = 0
    for number, layer in zip(range(1, depth + 1), cycle(map(_layer, stack)), strict=False):
        further = reached | layer(reached)
        new = further & ~reached
        first[_unpacked(new, n)] = number
        reached, idle = further, 0 if new.any() else idle + 1
        if idle == len(stack):  # a whole round has added nothing, nor will the next
            break
    return torch.from_numpy(first).to(stack[0].device)


def _layer(allowed: Tensor) -> Callable[[np.ndarray], np.ndarray]:
    """What each query finds when it looks through a layer at what tokens hold, both as of ``_packed``."""
    n = allowed.shape[-1]
    if int(allowed.sum()) > SPARSE * n * n:
        return lambda held: _packed(product(allowed.cpu(), torch.from_numpy(_unpacked(held, n))).numpy())
    queries, keys = allowed.cpu().numpy().nonzero()
    looking, begins = np.unique(queries, return_index=True)
    return partial(_gathered, looking, begins, keys)


def _gathered(looking: np.ndarray, begins: np.ndarray, keys: np.ndarray, held: np.ndarray) -> np.ndarray:
    found = np.zeros_like(held)
    if len(keys):
        found[looking] = np.bitwise_or.reduceat(held.take(keys, axis=0), begins, axis=0)
    return found


def _packed(rows: np.ndarray) -> np.ndarray:
    """``bool [n, n]`` as bits, ``uint64 [n, ⌈n / 64⌉]``: an operation takes 64 tokens at once."""
    bits = np.packbits(rows, axis=-1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[-1] % (WORD // 8)))).view(np.uint64)


def _unpacked(words: np.ndarray, n: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), axis=-1, count=n).view(bool)


def reached_shares(first: Tensor, depth: int, *, causal: bool) -> tuple[float, ...]:
    """Share of the pairs that may ever be connected (causal: j <= i) which are, after 0, 1, ... ``depth`` layers."""
    n = first.shape[-1]
    new = torch.bincount(first.flatten() - NEVER, minlength=depth + 2)[1 : depth + 2]
    return tuple((new.cumsum(0).double() / (n * (n + 1) // 2 if causal else n * n)).tolist())


def smallest_depth(layers: Sequence[Tensor], *, causal: bool) -> int | None:
    """How many layers connect every pair (causal: every j <= i) when these are stacked over and over; None: never.

    At least one. For a single pattern this is the diameter of its graph.

    Args:
        layers: one round of the stack, ``bool [n, n]`` each, the first layer first; at least one.
        causal: whether no layer looks ahead.
    """
    n = layers[0].shape[-1]
    reached = _packed(np.eye(n, dtype=bool))
    wanted = _packed(np.tri(n, dtype=bool) if causal else np.ones((n, n), dtype=bool))
    idle = 0
    for number, layer in zip(count(1), cycle(map(_layer, layers))):
        further = reached | layer(reached)
        if not (wanted & ~further).any():
            return number
        idle = idle + 1 if np.array_equal(further, reached) else 0
        if idle == len(layers):
            break
        reached = further
    return None
