"""What a backward pass holds of a deep stack: plain residuals, checkpoints, and Reformer's reversible residuals.

One function, evaluated in three ways: blocks of softmax attention and a feed-forward layer on two streams, with drawn
weights. Both streams begin as a head's queries. Bytes are those of one forward and backward pass beyond input, weights
and the gradients of both, counted tensor by tensor.
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
from attention_core.metrics.error import relative_error
from attention_core.ops.random import generator
from attention_core.ops.reversible import Block, Streams, checkpointed, forward, restored, reversible
from attention_core.ops.softmax.exact import exact_attention

PLAIN, CHECKPOINTS, REVERSIBLE = "plain", "checkpoints", "reversible"
WAYS = (PLAIN, CHECKPOINTS, REVERSIBLE)
DEPTHS = (1, 4, 9, 16, 25)
"""Blocks of a stack: square numbers, as checkpoints stand √L apart."""
MOST = 128
"""Tokens used at most, the first ones."""
WORK = 2**31
"""Multiply-adds of a forward pass beyond which a stack is not made: about a second for all three ways."""
WIDENED = 4
"""How many times wider the feed-forward layer is inside."""


@dataclass(frozen=True, kw_only=True)
class ReversibleTask:
    """One way at one depth.

    Attributes:
        source: the input.
        head: the head whose queries are the streams.
        way: one of ``WAYS``.
        depth: blocks.
    """

    source: Source
    head: int
    way: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversibleRow:
    """One stack.

    Attributes:
        way: one of ``WAYS``.
        depth: blocks.
        n: tokens.
        d: size of a token in either stream.
        peak_bytes: of forward and backward.
        error: how far the streams restored from the last ones are off the input, as a share of its size; None in ways
            that restore none.
    """

    way: str
    depth: int
    n: int
    d: int
    peak_bytes: int
    error: float | None = None


def tasks(source: Source, n: int, d: int, *, head: int) -> tuple[ReversibleTask, ...]:
    """Every way at every depth that is not too much work, the shallow ones first.

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
    """Count, and see how well the input comes back.

    Raises:
        LabError: if the source cannot be read.
    """
    x = load(task.source, None).q[task.head, :MOST].float()[None, None]
    n, d = x.shape[-2:]
    blocks = stack(d, task.depth, like=x)
    x1, x2 = (x.clone().requires_grad_() for _ in range(2))
    at_output = torch.randn(x.shape, generator=generator(0, 0), dtype=x.dtype)

    def both() -> None:
        torch.autograd.backward(evaluated(task.way, x1, x2, blocks), (at_output, at_output))

    held, error = count(both, unit=torch.uint8).peak_elements, None
    if task.way == REVERSIBLE:
        with torch.no_grad():
            back = restored(*forward(x, x, blocks), blocks)
        error = max(float(relative_error(one[0, 0], x[0, 0])) for one in back)
    return (ReversibleRow(way=task.way, depth=task.depth, n=n, d=d, peak_bytes=held, error=error),)


def stack(d: int, depth: int, *, like: Tensor) -> tuple[Block, ...]:
    """Blocks whose f is softmax attention and whose g is a feed-forward layer, each behind a layer norm.

    Their weights are drawn, and have a gradient of zeros each, to which a backward pass adds.

    Args:
        d: size of a token in either stream.
        depth: how many.
        like: the tensor whose dtype the weights take.
        seed: of the weights.
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


def evaluated(way: str, x1: Tensor, x2: Tensor, blocks: Sequence[Block]) -> Streams:
    """Both streams behind the last block, ready for a backward pass in one of ``WAYS``."""
    if way == REVERSIBLE:
        return reversible(x1, x2, blocks)
    return forward(x1, x2, blocks) if way == PLAIN else checkpointed(x1, x2, blocks, every=segment(len(blocks)))


def segment(depth: int) -> int:
    """Blocks between two checkpoints: about √L, which makes the sum of both kinds of bytes least."""
    return math.isqrt(depth - 1) + 1


def block_bytes(n: int, d: int) -> int:
    """What one block keeps for its backward pass, in float32, weights apart.

    Attention keeps its input, that normalised, q, k, v, the output and a log-sum-exp; the feed-forward layer its input,
    that normalised, and what is inside; each norm keeps two numbers per token.
    """
    return 4 * n * ((6 + 2 + WIDENED) * d + 1 + 4)


def miss(rows: Sequence[ReversibleRow]) -> float:
    """How far the formula's bytes are off the counted ones at most, as a share of these; 0 where it says nothing."""
    counted = {(row.way, row.depth): row.peak_bytes for row in rows}
    found = ((counted[way, depth], said) for way, points in promised(rows).items() for depth, said in points)
    return max((abs(said / held - 1) for held, said in found), default=0.0)


def promised(rows: Sequence[ReversibleRow]) -> Mapping[str, list[tuple[int, float]]]:
    """The formula's bytes by way, ``(depth, bytes)``: what was counted for one block, and what each further one adds.

    Plain: all that a block keeps. Checkpoints every ``s`` blocks: two streams per checkpoint, and all that the blocks
    of one segment keep. Reversible: two streams that are restored and their gradients, however many blocks there are.
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
