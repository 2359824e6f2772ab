"""Attention by any rule for the weights, walked through in blocks of queries: n² work, never n² numbers at once."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention_core.ops.softmax.masked import widened

ROWS = 64
"""Queries per block: the products reach full speed here, and a block against 8192 keys still fits a level-3 cache."""
STEP = 2**15
"""Numbers of one block below which further heads join it, to save calls: 128 KiB of float32."""


@dataclass(frozen=True)
class Rows:
    """The queries ``start <= i < stop`` of n tokens, with the keys they may see."""

    start: int
    stop: int
    n: int
    causal: bool

    @property
    def size(self) -> int:
        """How many queries."""
        return self.stop - self.start

    @property
    def keys(self) -> int:
        """How many keys, from the first, any of these queries may see."""
        return self.stop if self.causal else self.n

    def hide(self, scores: Tensor, value: float) -> Tensor:
        """Overwrite the scores of keys that lie ahead of their query, ``[..., size, keys]``, and return them all."""
        if self.causal:
            ahead = torch.ones(self.size, self.size, dtype=torch.bool, device=scores.device).triu(1)
            scores[..., self.start :].masked_fill_(ahead, value)
        return scores

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax over the keys each query may see; the logits are overwritten."""
        return self.hide(logits, -math.inf).softmax(-1)

    def seen(self, device: torch.device) -> Tensor:
        """How many keys each query may see, ``[size, 1]`` float64, or ``[1, 1]`` where all see the same."""
        first, last = (self.start + 1, self.stop) if self.causal else (self.n, self.n)
        return torch.arange(first, last + 1, dtype=torch.float64, device=device)[:, None]


def block_size(n: int, *, width: int = 1) -> int:
    """Queries of one block; the last may have fewer."""
    return max(1, min(n // 8, ROWS) // width)


def row_blocks(n: int, *, causal: bool, width: int = 1) -> list[Rows]:
    """The blocks that cover n queries, each with well below n² numbers.

    Args:
        n: number of tokens.
        causal: whether query i sees keys 0..i only.
        width: numbers the rule holds at once for each pair of query and key.
    """
    size = block_size(n, width=width)
    return [Rows(start, min(start + size, n), n, causal) for start in range(0, n, size)]


def pairs(n: int, *, causal: bool, width: int = 1) -> int:
    """Pairs of query and key that ``blockwise_attention`` computes for one head; causal blocks skip what lies ahead."""
    if not causal:
        return n * n
    size = block_size(n, width=width)
    whole, rest = divmod(n, size)
    return size**2 * whole * (whole + 1) // 2 + rest * n


def largest_block(n: int, *, width: int = 1) -> int:
    """Pairs of query and key in the largest block of one head."""
    return n * block_size(n, width=width)


Weigh = Callable[[Tensor, Tensor, Rows], Tensor]
"""A rule: ``(q [..., size, d], k [..., keys, d], rows) -> A [..., size, keys]``, differentiable in q and k."""


Mix = Callable[[Tensor, Tensor, Tensor, Rows], Tensor]
"""The same rows times v: ``(q [..., size, d], k [..., keys, d], v [..., keys, d_v], rows) -> [..., size, d_v]``."""


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
    """``A v`` for a rule that gives rows of A, ``[..., n, d_v]``, in O(n) memory forward and backward.

    The backward works out each block of A again rather than keep it, and can itself not be differentiated.

    Args:
        weigh: the rule, given at least float32; what it closes over is constant.
        q: ``[..., n, d]``; without leading axes it serves all of v's.
        k: as q.
        v: ``[..., n, d_v]``.
        causal: whether query i sees keys 0..i only.
        width: numbers the rule holds at once for each pair of query and key.
        step: numbers of one block of the forward below which further heads join it.
        mix: a shorter way to the rule's rows times v, for the forward; q, k and v then have the same leading axes.
    """
    q, k, flat = (widened(x).reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) for x in (q, k, v))
    return _Blockwise.apply(q, k, flat, weigh, causal, width, step, mix).reshape(v.shape).to(v.dtype)


def _steps(q: Tensor, v: Tensor, causal: bool, width: int, step: int) -> Iterator[tuple[slice, slice, Rows]]:
    """Heads of q and k, heads of v and the queries of each block, head by head so that keys stay in the cache."""
    n = q.shape[-2]
    blocks = row_blocks(n, causal=causal, width=width)
    together = max(1, step // (block_size(n, width=width) * n * width))
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
        out = torch.empty_like(v)
        for heads, values, rows in _steps(q, v, causal, width, step):
            queries, keys, seen = q[heads, rows.start : rows.stop], k[heads, : rows.keys], v[values, : rows.keys]
            # No name holds the weights: the last block is gone before the next one is made.
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
