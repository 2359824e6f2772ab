"""How far information travels through a stack of masked attention layers, by boolean matrix products.

A layer's pattern is ``bool [n, n]``; rows are queries, columns are keys, true = allowed. The residual connection keeps
the information that a token already holds, so connected pairs stay connected. Layers are counted from 1.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, cycle

import numpy as np
import torch
from torch import Tensor

NEVER = -1
"""Entry in a matrix of first layers for a pair that the given layers do not connect."""
SPARSE = 1 / 4
"""Maximum share of allowed pairs at which a layer's pairs are processed one by one; above it, a product is faster."""
WORD = 64
"""Number of tokens whose bits are packed into one integer."""


def product(later: Tensor, earlier: Tensor) -> Tensor:
    """Return which tokens reach which queries through two layers, ``bool [n, n]``."""
    # The float matrix product counts the paths between two tokens. Only whether a count is zero matters.
    return (later.float() @ earlier.float()) > 0


def first_layers(stack: Sequence[Tensor], depth: int) -> Tensor:
    """Return the layer after which query i first holds information of token j, or ``NEVER``; 0 for i = j.

    Args:
        stack: one round of layers, ``bool [n, n]`` each, the first layer first; at least one layer.
        depth: total number of layers; the stack is repeated.

    Returns:
        ``int16 [n, n]``.
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
        if idle == len(stack):  # no layer of the stack added a pair, so repeating the stack adds none either
            break
    return torch.from_numpy(first).to(stack[0].device)


def _layer(allowed: Tensor) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that applies a layer to a matrix of reached pairs, packed by ``_packed``."""
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
    """Pack ``bool [n, n]`` into bits, ``uint64 [n, ⌈n / 64⌉]``, so that one operation processes 64 tokens."""
    bits = np.packbits(rows, axis=-1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[-1] % (WORD // 8)))).view(np.uint64)


def _unpacked(words: np.ndarray, n: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), axis=-1, count=n).view(bool)


def reached_shares(first: Tensor, depth: int, *, causal: bool) -> tuple[float, ...]:
    """Compute the share of pairs (causal: with j <= i) that are connected after 0, 1, ... ``depth`` layers."""
    n = first.shape[-1]
    new = torch.bincount(first.flatten() - NEVER, minlength=depth + 2)[1 : depth + 2]
    return tuple((new.cumsum(0).double() / (n * (n + 1) // 2 if causal else n * n)).tolist())


def smallest_depth(layers: Sequence[Tensor], *, causal: bool) -> int | None:
    """Compute the number of layers (at least 1) that connect every pair (causal: every j <= i), or None if none does.

    The layers are repeated in order. For a single pattern this is the diameter of its graph.

    Args:
        layers: one round of the stack, ``bool [n, n]`` each, the first layer first; at least one layer.
        causal: whether every layer is causal.
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
