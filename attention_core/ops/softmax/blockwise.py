"""Attention with any rule for the weights, computed in blocks of queries, so that n² weights are never in memory."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention_core.ops.softmax.masked import at_least_float32

ROWS = 64
"""Queries per block: the products reach full speed, and a block for 8192 keys still fits a level-3 cache."""
STEP = 2**15
"""Numbers per block below which a block covers several heads, to save calls: 128 KiB of float32."""


@dataclass(frozen=True)
class Rows:
    """The queries ``start <= i < stop``, with the keys that they can attend to: all n, or if causal those up to i."""

    start: int
    stop: int
    n: int
    causal: bool

    @property
    def size(self) -> int:
        """The number of queries."""
        return self.stop - self.start

    @property
    def keys(self) -> int:
        """The number of keys, counted from the first, that any of these queries can attend to."""
        return self.stop if self.causal else self.n

    def hide(self, scores: Tensor, value: float) -> Tensor:
        """Overwrite the scores of keys later than their query, ``[..., size, keys]``, and return all scores."""
        if self.causal:
            ahead = torch.ones(self.size, self.size, dtype=torch.bool, device=scores.device).triu(1)
            scores[..., self.start :].masked_fill_(ahead, value)
        return scores

    def softmax(self, logits: Tensor) -> Tensor:
        """Return softmax over the keys that each query can attend to; the logits are overwritten."""
        return self.hide(logits, -math.inf).softmax(-1)

    def seen(self, device: torch.device) -> Tensor:
        """Return the number of keys of each query, float64 ``[size, 1]``, or ``[1, 1]`` if all are equal."""
        first, last = (self.start + 1, self.stop) if self.causal else (self.n, self.n)
        return torch.arange(first, last + 1, dtype=torch.float64, device=device)[:, None]


def block_size(n: int, *, width: int = 1) -> int:
    """Return the number of queries per block; the last block may have fewer."""
    return max(1, min(n // 8, ROWS) // width)


def row_blocks(n: int, *, causal: bool, width: int = 1, keys: int | None = None) -> list[Rows]:
    """Return the blocks that cover n queries, each with far fewer than n² numbers.

    Args:
        n: number of queries.
        causal: whether query i attends to keys 0..i only.
        width: numbers that the rule needs in memory for each pair of query and key.
        keys: number of keys; n for None.
    """
    size, keys = block_size(n, width=width), n if keys is None else keys
    return [Rows(start, min(start + size, n), keys, causal) for start in range(0, n, size)]


def pairs(n: int, *, causal: bool, width: int = 1, keys: int | None = None) -> int:
    """Count the pairs that ``blockwise_attention`` computes for one head; causal blocks skip later keys."""
    if not causal:
        return n * (keys or n)
    size = block_size(n, width=width)
    whole, rest = divmod(n, size)
    return size**2 * whole * (whole + 1) // 2 + rest * n


def largest_block(n: int, *, width: int = 1, keys: int | None = None) -> int:
    """Count the pairs of query and key in the largest block of one head."""
    return (keys or n) * block_size(n, width=width)


Weigh = Callable[[Tensor, Tensor, Rows], Tensor]
"""A rule: ``(q [..., size, d], k [..., keys, d], rows) -> A [..., size, keys]``, differentiable in q and k."""


Mix = Callable[[Tensor, Tensor, Tensor, Rows], Tensor]
"""Rows of a rule times v: ``(q [..., size, d], k [..., keys, d], v [..., keys, d_v], rows) -> [..., size, d_v]``."""


def blockwise_attention(
    weigh: Weigh,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool,
    width: int = 1,
    step: int = STEP,
    mix: Mix | None = None,
) -> Tensor:
    """Return ``A v``, ``[..., n, d_v]``, for a rule that computes rows of A, in O(n) memory forward and backward.

    The backward pass recomputes each block of A. It cannot be differentiated again.

    Args:
        weigh: the rule, which receives at least float32; its closure must not change.
        q: ``[..., n, d]``; without leading axes it is shared by all leading axes of v.
        k: ``[..., m, d]``, like q; if causal, m must equal n.
        v: ``[..., m, d_v]``.
        causal: whether query i attends to keys 0..i only.
        width: numbers that the rule needs in memory for each pair of query and key.
        step: numbers per block of the forward pass below which a block covers several heads.
        mix: a faster function for the rows times v in the forward pass; q, k and v then share their leading axes.
    """
    q, k, flat = (at_least_float32(x).reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) for x in (q, k, v))
    out = _Blockwise.apply(q, k, flat, weigh, causal, width, step, mix)
    return out.reshape(*v.shape[:-2], *out.shape[-2:]).to(v.dtype)


def _steps(q: Tensor, v: Tensor, causal: bool, width: int, step: int) -> Iterator[tuple[slice, slice, Rows]]:
    """Yield the heads of q and k, the heads of v and the rows of each block; the order keeps keys in the CPU cache."""
    n, keys = q.shape[-2], v.shape[-2]
    blocks = row_blocks(n, causal=causal, width=width, keys=keys)
    together = max(1, step // (block_size(n, width=width) * keys * width))
    for head in range(0, len(q), together):
        heads = slice(head, head + together)
        for rows in blocks:
            yield heads, heads if len(q) == len(v) else slice(None), rows


class _Blockwise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own context
        q: Tensor,
        k: Tensor,
        v: Tensor,
        weigh: Weigh,
        causal: bool,
        width: int,
        step: int,
        mix: Mix | None,
    ) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.rule = weigh, causal, width
        out = v.new_empty(len(v), *q.shape[-2:-1], v.shape[-1])
        for heads, values, rows in _steps(q, v, causal, width, step):
            queries, keys, seen = q[heads, rows.start : rows.stop], k[heads, : rows.keys], v[values, : rows.keys]
            # The weights of a block have no name, so that they are freed before the next block's are computed.
            out[values, rows.start : rows.stop] = (
                weigh(queries, keys, rows) @ seen if mix is None else mix(queries, keys, seen, rows)
            )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        q, k, v = ctx.saved_tensors
        weigh, causal, width = ctx.rule
        dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
        for heads, values, rows in _steps(q, v, causal, width, STEP):
            q_rows = q[heads, rows.start : rows.stop].detach().requires_grad_()
            k_seen = k[heads, : rows.keys].detach().requires_grad_()
            with torch.enable_grad():
                a = weigh(q_rows, k_seen, rows)
            g = grad[values, rows.start : rows.stop]
            dv[values, : rows.keys] += a.detach().mT @ g
            if a.requires_grad:
                da = (g @ v[values, : rows.keys].mT).sum_to_size(a.shape)
                found = torch.autograd.grad(a, (q_rows, k_seen), da, allow_unused=True)
                for total, span, part in zip((dq, dk), ((rows.start, rows.stop), (0, rows.keys)), found, strict=True):
                    if part is not None:
                        total[heads, slice(*span)] += part
        return dq, dk, dv, None, None, None, None, None
