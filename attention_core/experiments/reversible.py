"""The memory of a deep stack's backward pass: plain residuals, checkpoints, and Reformer's reversible residuals.

All three ways compute the same function: blocks of softmax attention and a feed-forward layer on two streams, with
random weights. Both streams start as a head's queries. Bytes are the peak of one forward and backward pass beyond
input, weights and the gradients of both, counted tensor by tensor.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.benchmarking.counting import count
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.approximation import relative_error
from attention_core.ops.random import generator
from attention_core.ops.reversible import Block, Streams, checkpointed, forward, restored, reversible
from attention_core.ops.softmax.exact import exact_attention

PLAIN, CHECKPOINTS, REVERSIBLE = "plain", "checkpoints", "reversible"
WAYS = (PLAIN, CHECKPOINTS, REVERSIBLE)
DEPTHS = (1, 4, 9, 16, 25)
"""Numbers of blocks. They are square numbers, because checkpoints are √L blocks apart."""
MOST = 128
"""Maximum number of tokens; the first tokens are used."""
WORK = 2**31
"""Maximum multiply-adds of a stack's forward pass: about a second for all three ways."""
WIDENED = 4
"""Ratio of the feed-forward layer's hidden size to d."""


@dataclass(frozen=True, kw_only=True)
class ReversibleTask:
    """A task that measures one way at one depth.

    Attributes:
        source: the input.
        head: the head whose queries are the streams.
        way: one of ``WAYS``.
        depth: number of blocks.
    """

    source: Source
    head: int
    way: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversibleRow:
    """The memory of one stack.

    Attributes:
        way: one of ``WAYS``.
        depth: number of blocks.
        n: tokens.
        d: size of a token in either stream.
        peak_bytes: peak bytes of forward and backward.
        error: relative error of the input restored from the last streams; None in ways that restore no streams.
    """

    way: str
    depth: int
    n: int
    d: int
    peak_bytes: int
    error: float | None = None


def tasks(source: Source, n: int, d: int, *, head: int) -> tuple[ReversibleTask, ...]:
    """Return one task per way and depth within the limit of work, shallow stacks first.

    Args:
        source: the input.
        n: its tokens.
        d: its head size.
        head: the head whose queries are the streams.
    """
    n = min(n, MOST)
    each = n * d * ((4 + 2 * WIDENED) * d + 2 * n)
    depths = [depth for depth in DEPTHS if depth * each <= WORK or depth <= DEPTHS[1]]
    return tuple(ReversibleTask(source=source, head=head, way=way, depth=depth) for depth in depths for way in WAYS)


def run(task: ReversibleTask, *, load: Load = load) -> tuple[ReversibleRow]:
    """Count the peak bytes, and measure how exactly the reversible way restores the input.

    Raises:
        LabError: if the source cannot be read.
    """
    x = load(task.source, None).q[task.head, :MOST].float()[None, None]
    n, d = x.shape[-2:]
    blocks = stack(d, task.depth, like=x)
    x1, x2 = (x.clone().requires_grad_() for _ in range(2))
    at_output = torch.randn(x.shape, generator=generator(0, 0), dtype=x.dtype)

    def both() -> None:
        torch.autograd.backward(forward_streams(task.way, x1, x2, blocks), (at_output, at_output))

    held, error = count(both, unit=torch.uint8).peak_elements, None
    if task.way == REVERSIBLE:
        with torch.no_grad():
            back = restored(*forward(x, x, blocks), blocks)
        error = max(float(relative_error(one[0, 0], x[0, 0])) for one in back)
    return (ReversibleRow(way=task.way, depth=task.depth, n=n, d=d, peak_bytes=held, error=error),)


def stack(d: int, depth: int, *, like: Tensor) -> tuple[Block, ...]:
    """Return blocks whose f is softmax attention and whose g is a feed-forward layer, each after a layer norm.

    The weights are random. Each has a gradient of zeros, to which a backward pass adds.

    Args:
        d: size of a token in either stream.
        depth: number of blocks.
        like: the tensor whose dtype the weights take.
    """

    def drawn(place: int, rows: int, columns: int) -> Tensor:
        weight = torch.randn(rows, columns, generator=generator(0, place), dtype=torch.float64) / rows**0.5
        weight = weight.to(like.dtype).requires_grad_()
        weight.grad = torch.zeros_like(weight)
        return weight

    def block(place: int) -> Block:
        wq, wk, wv, wo = (drawn(6 * place + i, d, d) for i in range(4))
        wide, narrow = drawn(6 * place + 4, d, WIDENED * d), drawn(6 * place + 5, WIDENED * d, d)

        def attention(x: Tensor) -> Tensor:
            x = F.layer_norm(x, (d,))
            return exact_attention(x @ wq, x @ wk, x @ wv) @ wo

        def feed_forward(x: Tensor) -> Tensor:
            return F.relu(F.layer_norm(x, (d,)) @ wide) @ narrow

        return attention, feed_forward

    return tuple(block(place) for place in range(depth))


def forward_streams(way: str, x1: Tensor, x2: Tensor, blocks: Sequence[Block]) -> Streams:
    """Return both streams after the last block, ready for a backward pass in one of ``WAYS``."""
    if way == REVERSIBLE:
        return reversible(x1, x2, blocks)
    return forward(x1, x2, blocks) if way == PLAIN else checkpointed(x1, x2, blocks, every=segment(len(blocks)))


def segment(depth: int) -> int:
    """Return the number of blocks between two checkpoints: about √L, which minimizes the bytes of both kinds."""
    return math.isqrt(depth - 1) + 1


def block_bytes(n: int, d: int) -> int:
    """Return the bytes that one block keeps for its backward pass in float32, without weights.

    Attention keeps its input, the normalized input, q, k, v, the output and a log-sum-exp. The feed-forward layer keeps
    its input, the normalized input and the hidden values. Each norm keeps two numbers per token.
    """
    return 4 * n * ((6 + 2 + WIDENED) * d + 1 + 4)


def max_prediction_error(rows: Sequence[ReversibleRow]) -> float:
    """Return the largest relative error of the formula's bytes against the counted bytes; 0 without counted bytes."""
    counted = {(row.way, row.depth): row.peak_bytes for row in rows}
    found = ((counted[way, depth], said) for way, points in predicted_bytes(rows).items() for depth, said in points)
    return max((abs(said / held - 1) for held, said in found), default=0.0)


def predicted_bytes(rows: Sequence[ReversibleRow]) -> Mapping[str, list[tuple[int, float]]]:
    """Return the formula's bytes by way, as ``(depth, bytes)``: the count for one block plus a term per further block.

    Plain: all that a block keeps. Checkpoints every ``s`` blocks: two streams per checkpoint, and all that the blocks
    of one segment keep. Reversible: two restored streams and their gradients, for any number of blocks.
    """
    found: dict[str, list[tuple[int, float]]] = {way: [] for way in WAYS}
    first = {row.way: float(row.peak_bytes) for row in rows if row.depth == 1}
    for row in rows:
        way, depth, n, d = row.way, row.depth, row.n, row.d
        if way in first:
            size = segment(depth)
            adds = {
                PLAIN: (depth - 1) * block_bytes(n, d),
                CHECKPOINTS: (-(-depth // size) - 1) * 2 * 4 * n * d + (size - 1) * block_bytes(n, d),
                REVERSIBLE: 4 * 4 * n * d * (depth > 1),
            }
            found[way].append((depth, first[way] + adds[way]))
    return found
