"""Reversible residuals: two streams whose blocks can be undone, so that a backward pass needs no activations kept.

A block makes ``y1 = x1 + f(x2)`` and ``y2 = x2 + g(y1)``; hence ``x2 = y2 - g(y1)`` and ``x1 = y1 - f(x2)``. Reformer
takes attention for f and the feed-forward layer for g: https://arxiv.org/abs/2001.04451, section 3.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Layer = Callable[[Tensor], Tensor]
Block = tuple[Layer, Layer]
"""``(f, g)``; both are deterministic and keep the shape of what they are given."""
Streams = tuple[Tensor, Tensor]


def forward(x1: Tensor, x2: Tensor, blocks: Sequence[Block]) -> Streams:
    """Both streams behind the last block, shaped as before the first; autograd keeps every layer's activations."""
    for f, g in blocks:
        x1 = x1 + f(x2)
        x2 = x2 + g(x1)
    return x1, x2


@torch.no_grad()
def restored(y1: Tensor, y2: Tensor, blocks: Sequence[Block]) -> Streams:
    """Both streams before the first block, from those behind the last; exact but for rounding."""
    for f, g in reversed(blocks):
        y2 = y2 - g(y1)
        y1 = y1 - f(y2)
    return y1, y2


def reversible(x1: Tensor, x2: Tensor, blocks: Sequence[Block]) -> Streams:
    """What ``forward`` gives, keeping the last streams alone: the backward pass restores the others block by block.

    The gradients of what the layers hold are added to its ``grad`` during the backward pass, which can itself not be
    differentiated; ``torch.autograd.grad`` sees those of the streams only. One of the streams must require a gradient.

    Args:
        x1: of any shape.
        x2: of the same shape.
        blocks: the blocks in order.
    """
    out: Streams = _Reversible.apply(x1, x2, tuple(blocks))
    return out


def checkpointed(x1: Tensor, x2: Tensor, blocks: Sequence[Block], *, every: int) -> Streams:
    """What ``forward`` gives, keeping both streams at every so many blocks: those between are run again for backward.

    Gradients and arguments as of ``reversible``. torch's own checkpoints do the same, but import its compiler: seconds.
    """
    for start in range(0, len(blocks), every):
        x1, x2 = _Checkpoint.apply(x1, x2, tuple(blocks[start : start + every]))
    return x1, x2


class _Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x1: Tensor, x2: Tensor, blocks: tuple[Block, ...]) -> Streams:  # noqa: ANN401 - torch's own context
        ctx.blocks = blocks
        ctx.save_for_backward(x1, x2)
        return forward(x1, x2, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d1: Tensor, d2: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        x1, x2 = (x.detach().requires_grad_() for x in ctx.saved_tensors)
        with torch.enable_grad():
            out = forward(x1, x2, ctx.blocks)
        torch.autograd.backward(out, (d1, d2))
        return x1.grad, x2.grad, None


class _Reversible(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x1: Tensor, x2: Tensor, blocks: tuple[Block, ...]) -> Streams:  # noqa: ANN401
        y1, y2 = forward(x1, x2, blocks)
        ctx.blocks = blocks
        ctx.save_for_backward(y1, y2)
        return y1, y2

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d1: Tensor, d2: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        y1, y2 = ctx.saved_tensors
        for f, g in reversed(ctx.blocks):
            y2, d1 = _undone(g, y1, y2, d1, d2)
            y1, d2 = _undone(f, y2, y1, d2, d1)
        return d1, d2, None


def _undone(layer: Layer, seen: Tensor, changed: Tensor, d_seen: Tensor, d_changed: Tensor) -> Streams:
    """Take back ``changed = before + layer(seen)``.

    Returns:
        ``before``, and the gradient at ``seen`` with what comes through the layer.
    """
    with torch.enable_grad():
        leaf = seen.detach().requires_grad_()
        out = layer(leaf)
    before = changed - out.detach()
    torch.autograd.backward(out, d_changed)
    return before, d_seen if leaf.grad is None else d_seen + leaf.grad
