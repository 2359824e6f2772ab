"""Computes how far information travels through a stack of masked attention layers, by boolean matrix products.

The mask of a layer is ``bool [n, n]``; rows are queries, columns are keys, true = allowed. A pair is connected
if the query holds information of the key; it stays connected, because the residual connection keeps the information.
Layers are counted from 1.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, cycle

import numpy as np
import torch
from torch import Tensor

NOT_REACHED = -1
"""Entry in a matrix of first layers for a pair that the given layers do not connect."""
MAX_SPARSE_SHARE = 1 / 4
"""Maximum share of allowed pairs at which a layer's pairs are processed one by one; above it, a product is faster."""
WORD_BITS = 64
"""Number of tokens whose bits are packed into one integer."""


def first_layers(stack: Sequence[Tensor], depth: int) -> Tensor:
    """Return the layer after which query i first holds information of token j, or ``NOT_REACHED``; 0 for i = j.

    Args:
        stack: one round of layers, ``bool [n, n]`` each, the first layer first; at least one layer.
        depth: total number of layers; the stack is repeated.

    Returns:
        ``int16 [n, n]``.
    """
    n = stack[0].shape[-1]
    reached = _pack_bits(np.eye(n, dtype=bool))
    first = np.full((n, n), NOT_REACHED, dtype=np.int16)
    np.fill_diagonal(first, 0)
    idle_layers = 0
    for number, layer in zip(range(1, depth + 1), cycle(map(_layer_step, stack)), strict=False):
        extended = reached | layer(reached)
        new = extended & ~reached
        first[_unpack_bits(new, n)] = number
        reached, idle_layers = extended, 0 if new.any() else idle_layers + 1
        if idle_layers == len(stack):  # no layer of the stack added a pair, so repeating the stack adds none either
            break
    return torch.from_numpy(first).to(stack[0].device)


def _layer_step(allowed: Tensor) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that applies a layer to a matrix of reached pairs, packed by ``_pack_bits``."""
    n = allowed.shape[-1]
    if int(allowed.sum()) > MAX_SPARSE_SHARE * n * n:
        # The float matrix product counts the paths between two tokens. Only whether a count is zero matters.
        matrix = allowed.cpu().float()
        return lambda pairs: _pack_bits((matrix @ torch.from_numpy(_unpack_bits(pairs, n)).float() > 0).numpy())
    queries, keys = allowed.cpu().numpy().nonzero()
    query_index, row_starts = np.unique(queries, return_index=True)
    return partial(_reached_by_keys, query_index, row_starts, keys)


def _reached_by_keys(index: np.ndarray, row_starts: np.ndarray, keys: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    result = np.zeros_like(pairs)
    if len(keys):
        result[index] = np.bitwise_or.reduceat(pairs.take(keys, axis=0), row_starts, axis=0)
    return result


def _pack_bits(rows: np.ndarray) -> np.ndarray:
    """Pack ``bool [n, n]`` into bits, ``uint64 [n, ⌈n / 64⌉]``, so that one operation processes 64 tokens."""
    bits = np.packbits(rows, axis=-1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[-1] % (WORD_BITS // 8)))).view(np.uint64)


def _unpack_bits(words: np.ndarray, n: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), axis=-1, count=n).view(bool)


def reached_shares(first: Tensor, depth: int, *, causal: bool) -> tuple[float, ...]:
    """Compute the share of pairs (causal: with j <= i) that are connected after 0, 1, ... ``depth`` layers."""
    n = first.shape[-1]
    new = torch.bincount(first.flatten() - NOT_REACHED, minlength=depth + 2)[1 : depth + 2]
    return tuple((new.cumsum(0).double() / (n * (n + 1) // 2 if causal else n * n)).tolist())


def smallest_depth(layers: Sequence[Tensor], *, causal: bool) -> int | None:
    """Return the smallest number of layers, at least 1, that connects all pairs; None if no number does.

    If causal, all pairs are those with ``j <= i``. The layers are repeated in order. For a single pattern, the
    result is the diameter of its graph.

    Args:
        layers: one round of the stack, ``bool [n, n]`` each, the first layer first; at least one layer.
        causal: whether every layer is causal.
    """
    n = layers[0].shape[-1]
    reached = _pack_bits(np.eye(n, dtype=bool))
    all_pairs = _pack_bits(np.tri(n, dtype=bool) if causal else np.ones((n, n), dtype=bool))
    idle_layers = 0
    for number, layer in zip(count(1), cycle(map(_layer_step, layers))):
        extended = reached | layer(reached)
        if not (all_pairs & ~extended).any():
            return number
        idle_layers = idle_layers + 1 if np.array_equal(extended, reached) else 0
        if idle_layers == len(layers):
            break
        reached = extended
    return None
