"""Reversible residual blocks on two streams: the backward pass recomputes activations instead of storing them.

A block computes ``y1 = x1 + f(x2)`` and ``y2 = x2 + g(y1)``; hence ``x2 = y2 - g(y1)`` and ``x1 = y1 - f(x2)``. In
Reformer f is attention and g is the feed-forward layer: https://arxiv.org/abs/2001.04451, section 3.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Layer = Callable[[Tensor], Tensor]
Block = tuple[Layer, Layer]
"""``(f, g)``; both must be deterministic and keep the shape of their input."""
Streams = tuple[Tensor, Tensor]


def forward(x1: Tensor, x2: Tensor, blocks: Sequence[Block]) -> Streams:
    """Return both streams after the last block; autograd stores every layer's activations."""
    for f, g in blocks:
        x1 = x1 + f(x2)
        x2 = x2 + g(x1)
    return x1, x2


@torch.no_grad()
def restored(y1: Tensor, y2: Tensor, blocks: Sequence[Block]) -> Streams:
    """Return both streams before the first block, given the streams after the last; exact up to rounding."""
    for f, g in reversed(blocks):
        y2 = y2 - g(y1)
        y1 = y1 - f(y2)
    return y1, y2


def reversible(x1: Tensor, x2: Tensor, blocks: Sequence[Block]) -> Streams:
    """Compute ``forward`` and store the last streams alone; the backward pass restores the others block by block.

    The backward pass adds the gradients of the layers' parameters to their ``grad``; ``torch.autograd.grad`` returns
    gradients of the streams only. The backward pass cannot be differentiated. One stream must require a gradient.

    Args:
        x1: of any shape.
        x2: of the same shape.
        blocks: the blocks in order.
    """
    out: Streams = _Reversible.apply(x1, x2, tuple(blocks))
    return out


def checkpointed(x1: Tensor, x2: Tensor, blocks: Sequence[Block], *, every: int) -> Streams:
    """Compute ``forward`` and store both streams after every ``every`` blocks; backward runs the others again.

    Gradients and arguments are as in ``reversible``. ``torch.utils.checkpoint`` does the same, but importing it imports
    torch's compiler, which takes seconds.
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
    """Undo ``changed = before + layer(seen)``.

    Returns:
        ``before``, and the gradient of ``seen`` including the gradient through the layer.
    """
    with torch.enable_grad():
        leaf = seen.detach().requires_grad_()
        out = layer(leaf)
    before = changed - out.detach()
    torch.autograd.backward(out, d_changed)
    return before, d_seen if leaf.grad is None else d_seen + leaf.grad
