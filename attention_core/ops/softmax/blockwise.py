"""Attention with any rule for the weights, computed in blocks of queries, so that n² weights are never in memory."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.once_differentiable import once_differentiable
from attention_core.ops.softmax.masked import at_least_float32

ROWS = 64
"""Queries per block: the products reach full speed, and a block for 8192 keys still fits a level-3 cache."""
STEP = 2**15
"""Numbers per block below which a block covers several heads, to save calls: 128 KiB of float32."""


@dataclass(frozen=True)
class RowBlock:
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
    def key_count(self) -> int:
        """The number of keys, counted from the first, that any of these queries can attend to."""
        return self.stop if self.causal else self.n

    def fill_future(self, scores: Tensor, value: float) -> Tensor:
        """Overwrite the scores of keys later than their query, ``[..., size, keys]``, and return all scores."""
        if self.causal:
            future = torch.ones(self.size, self.size, dtype=torch.bool, device=scores.device).triu(1)
            scores[..., self.start :].masked_fill_(future, value)
        return scores

    def softmax(self, logits: Tensor) -> Tensor:
        """Return softmax over the keys that each query can attend to; the logits are overwritten."""
        return self.fill_future(logits, -math.inf).softmax(-1)

    def key_counts(self, device: torch.device) -> Tensor:
        """Return the number of keys of each query, float64 ``[size, 1]``, or ``[1, 1]`` if all are equal."""
        first, last = (self.start + 1, self.stop) if self.causal else (self.n, self.n)
        return torch.arange(first, last + 1, dtype=torch.float64, device=device)[:, None]


def block_size(n: int, *, per_pair: int = 1) -> int:
    """Return the number of queries per block; the last block may have fewer. ``per_pair`` is as in ``row_blocks``."""
    return max(1, min(n // 8, ROWS) // per_pair)


def row_blocks(
    n: int, *, causal: bool, per_pair: int = 1, keys: int | None = None, size: int | None = None
) -> list[RowBlock]:
    """Return the blocks that cover n queries, each with far fewer than n² numbers.

    Args:
        n: number of queries.
        causal: whether query i attends to keys 0..i only.
        per_pair: numbers that the rule needs in memory for each pair of query and key.
        keys: number of keys; n for None.
        size: queries per block; ``block_size`` for None.
    """
    size, keys = size or block_size(n, per_pair=per_pair), n if keys is None else keys
    return [RowBlock(start, min(start + size, n), keys, causal) for start in range(0, n, size)]


def n_pairs(n: int, *, causal: bool, per_pair: int = 1, keys: int | None = None) -> int:
    """Count the pairs that ``blockwise_attention`` computes for one head; causal blocks skip later keys."""
    if not causal:
        return n * (keys or n)
    size = block_size(n, per_pair=per_pair)
    full_blocks, rest = divmod(n, size)
    return size**2 * full_blocks * (full_blocks + 1) // 2 + rest * n


def largest_block(n: int, *, per_pair: int = 1, keys: int | None = None) -> int:
    """Count the pairs of query and key in the largest block of one head."""
    return (keys or n) * block_size(n, per_pair=per_pair)


WeightRule = Callable[[Tensor, Tensor, RowBlock], Tensor]
"""A rule: ``(q [..., size, d], k [..., keys, d], rows) -> A [..., size, keys]``, differentiable in q and k."""


OutputRule = Callable[[Tensor, Tensor, Tensor, RowBlock], Tensor]
"""Rows of a rule times v: ``(q [..., size, d], k [..., keys, d], v [..., keys, d_v], rows) -> [..., size, d_v]``."""


def blockwise_attention(
    row_weights: WeightRule,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool,
    per_pair: int = 1,
    step: int = STEP,
    row_outputs: OutputRule | None = None,
) -> Tensor:
    """Return ``A v``, ``[..., n, d_v]``, for a rule that computes rows of A, in O(n) memory forward and backward.

    The backward pass recomputes each block of A. It cannot be differentiated again.

    Args:
        row_weights: the rule, which receives at least float32; the backward pass calls it again, so its closure
            must not change.
        q: ``[..., n, d]``; without leading axes it is shared by all leading axes of v.
        k: ``[..., m, d]``, like q; if causal, m must equal n.
        v: ``[..., m, d_v]``.
        causal: whether query i attends to keys 0..i only.
        per_pair: numbers that the rule needs in memory for each pair of query and key.
        step: numbers per block below which a block of the forward pass covers several heads.
        row_outputs: a faster function for the rows times v in the forward pass; q, k and v then share leading axes.
    """
    q, k, flat = (at_least_float32(x).reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) for x in (q, k, v))
    out = _Blockwise.apply(q, k, flat, row_weights, causal, per_pair, step, row_outputs)
    return out.reshape(*v.shape[:-2], *out.shape[-2:]).to(v.dtype)


def head_blocks(
    q: Tensor, v: Tensor, *, causal: bool, per_pair: int = 1, step: int = STEP
) -> Iterator[tuple[slice, slice, RowBlock]]:
    """Yield the heads of q and k, the heads of v and the rows of each block; the order keeps keys in the CPU cache."""
    n, keys = q.shape[-2], v.shape[-2]
    numbers, size = keys * per_pair, block_size(n, per_pair=per_pair)
    heads_per_block = step_size(max(1, step // (size * numbers)), q.device, numbers=size * numbers)
    size = step_size(size, q.device, numbers=min(len(q), heads_per_block) * numbers)
    blocks = row_blocks(n, causal=causal, per_pair=per_pair, keys=keys, size=size)
    for head in range(0, len(q), heads_per_block):
        heads = slice(head, head + heads_per_block)
        for rows in blocks:
            yield heads, heads if len(q) == len(v) else slice(None), rows


class _Blockwise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's context object
        q: Tensor,
        k: Tensor,
        v: Tensor,
        row_weights: WeightRule,
        causal: bool,
        per_pair: int,
        step: int,
        row_outputs: OutputRule | None,
    ) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.rule = row_weights, causal, per_pair
        out = v.new_empty(len(v), *q.shape[-2:-1], v.shape[-1])
        for heads, values, rows in head_blocks(q, v, causal=causal, per_pair=per_pair, step=step):
            queries, keys = q[heads, rows.start : rows.stop], k[heads, : rows.key_count]
            v_block = v[values, : rows.key_count]
            # The weights of a block are not assigned to a variable, so they are freed before the next block.
            out[values, rows.start : rows.stop] = (
                row_weights(queries, keys, rows) @ v_block
                if row_outputs is None
                else row_outputs(queries, keys, v_block, rows)
            )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        q, k, v = ctx.saved_tensors
        row_weights, causal, per_pair = ctx.rule
        dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
        for heads, values, rows in head_blocks(q, v, causal=causal, per_pair=per_pair):
            q_block = q[heads, rows.start : rows.stop].detach().requires_grad_()
            k_block = k[heads, : rows.key_count].detach().requires_grad_()
            with torch.enable_grad():
                weights = row_weights(q_block, k_block, rows)
            grad_block = grad[values, rows.start : rows.stop]
            dv[values, : rows.key_count] += weights.detach().mT @ grad_block
            if weights.requires_grad:
                grad_weights = (grad_block @ v[values, : rows.key_count].mT).sum_to_size(weights.shape)
                grads = torch.autograd.grad(weights, (q_block, k_block), grad_weights, allow_unused=True)
                spans = slice(rows.start, rows.stop), slice(rows.key_count)
                for total, span, block_grad in zip((dq, dk), spans, grads, strict=True):
                    if block_grad is not None:
                        total[heads, span] += block_grad
        return dq, dk, dv, None, None, None, None, None
