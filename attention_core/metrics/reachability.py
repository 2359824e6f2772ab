"""How far a stack of patterns reaches: boolean products, with the residual connection of every layer.

A layer's pattern is ``bool [n, n]``, rows queries, columns keys, true = may look. Through the residual connection each
token also keeps what it already holds, so what is connected stays connected. In ``first`` the first layer counts as 1.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

NEVER = -1
"""In a matrix of first layers: not connected within the layers given."""


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
    reached = torch.eye(n, dtype=torch.bool, device=stack[0].device)
    first = torch.full((n, n), NEVER, dtype=torch.int16, device=reached.device).masked_fill(reached, 0)
    idle = 0
    for number in range(depth):
        new = product(stack[number % len(stack)], reached) & ~reached
        first = first.masked_fill(new, number + 1)
        reached = reached | new
        idle = 0 if new.any() else idle + 1
        if idle == len(stack):  # a whole round has added nothing, nor will the next
            break
    return first


def reached_share(first: Tensor, depth: int, *, causal: bool) -> float:
    """Share of the pairs that may ever be connected (causal: j <= i) which are after so many layers, 0 to 1."""
    n = first.shape[-1]
    return int(((first >= 0) & (first <= depth)).sum()) / (n * (n + 1) // 2 if causal else n * n)


def smallest_depth(layers: Sequence[Tensor], *, causal: bool) -> int | None:
    """How many layers connect every pair (causal: every j <= i) when these are stacked over and over; None: never.

    At least one. For a single pattern this is the diameter of its graph. It takes O(log depth) products.

    Args:
        layers: one round of the stack, ``bool [n, n]`` each, the first layer first; at least one.
        causal: whether no layer looks ahead.
    """
    n = layers[0].shape[-1]
    itself = torch.eye(n, dtype=torch.bool, device=layers[0].device)
    layers = [layer | itself for layer in layers]
    wanted = torch.ones_like(itself).tril() if causal else torch.ones_like(itself)

    def complete(reached: Tensor) -> bool:
        return bool((reached | ~wanted).all())

    once = itself
    for layer in layers:
        once = product(layer, once)
    powers = [once]  # of one round: 1, 2, 4, ... rounds
    while not complete(powers[-1]):
        twice = product(powers[-1], powers[-1])
        if torch.equal(twice, powers[-1]):
            return None
        powers.append(twice)
    # The most rounds that do not yet connect everything; the layer sought lies in the round after them.
    reached, depth = itself, 0
    for exponent in reversed(range(len(powers) - 1)):
        further = product(powers[exponent], reached)
        if not complete(further):
            reached, depth = further, depth + len(layers) * 2**exponent
    for layer in layers:
        reached, depth = product(layer, reached), depth + 1
        if complete(reached):
            break
    return depth
