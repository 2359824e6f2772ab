"""Tokens laid out so that a pattern costs only its own pairs: in blocks with the keys around them, by residue.

A band is cut into blocks of queries with the keys around them. Sorted by position modulo a stride, pairs a multiple of
the stride apart become neighbours.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.softmax.blockwise import pairs

BLOCK = 32
"""Queries that share one window of a band: fewer waste less outside it, more fill the kernel better."""


class Group(NamedTuple):
    """Blocks of one shape, ready for a fused kernel: ``kernel(g.q, g.k, g.v, mask=g.mask)``.

    Attributes:
        q: ``[X, blocks, rows, d]``, a view.
        k: ``[X, blocks, columns, d]``, a view; neighbouring blocks overlap.
        v: ``[X, blocks, columns, d_v]``, likewise.
        mask: ``bool [rows, columns]``, or None where every pair is allowed.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None


def windows(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    block: int,
    before: int = 0,
    after: int = 0,
    allowed: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[Group]:
    """Cut the queries into blocks; each sees the keys from ``before`` ahead of it to ``after`` behind it.

    All blocks whose keys lie inside the sequence form one group of overlapping views; the few at the edges come one by
    one with their keys cut short, so nothing is padded and nothing is copied. Groups come in the order of their rows.

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        block: queries per block.
        before: keys ahead of a block's first query.
        after: keys behind a block's last query.
        allowed: says of the distances ``i - j``, a tensor of whole numbers, which pairs may look; None means all.
    """
    n = q.shape[-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    position = torch.arange(n, dtype=torch.int32, device=q.device)
    for first, last in runs(n, block, before, after):
        rows, columns = extent(first, n, block, before, after)
        end = (last - first) * block  # how far the run's last block lies behind its first
        i, j = position[rows.start : rows.stop, None], position[columns.start : columns.stop]
        yield Group(
            q[:, rows.start : rows.stop + end].unfold(-2, len(rows), block).mT,
            k[:, columns.start : columns.stop + end].unfold(-2, len(columns), block).mT,
            v[:, columns.start : columns.stop + end].unfold(-2, len(columns), block).mT,
            None if allowed is None else allowed(i - j),
        )


def extent(index: int, n: int, block: int, before: int, after: int) -> tuple[range, range]:
    """Rows and columns of one block."""
    start, stop = index * block, min((index + 1) * block, n)
    return range(start, stop), range(max(start - before, 0), min(stop + after, n))


def runs(n: int, block: int, before: int, after: int) -> Iterator[tuple[int, int]]:
    """First and last block of each run of equal blocks, in order."""
    blocks = -(-n // block)
    inner = -(-before // block)  # the first block whose keys do not begin before the sequence
    edge = (n - after) // block  # the first block that is short or whose keys would end behind the sequence
    if inner >= edge:
        inner = edge = blocks
    yield from ((b, b) for b in range(inner))
    if inner < edge:
        yield inner, edge - 1
    yield from ((b, b) for b in range(edge, blocks))


def window_pairs(n: int, *, block: int, before: int = 0, after: int = 0) -> int:
    """Pairs of query and key that the groups hold, the forbidden ones included."""
    extents = (extent(b, n, block, before, after) for b in range(-(-n // block)))
    return sum(len(rows) * len(columns) for rows, columns in extents)


def gathered(outs: list[Tensor], like: Tensor) -> Tensor:
    """The groups' outputs ``[X, blocks, rows, e]``, in order, as ``[..., n, e]`` with the leading axes of ``like``."""
    rows = [out.reshape(out.shape[0], -1, out.shape[-1]) for out in outs]
    return (rows[0] if len(rows) == 1 else torch.cat(rows, 1)).reshape(*like.shape[:-1], -1)


def residues(x: Tensor, stride: int) -> Iterator[Tensor]:
    """The tokens of ``[..., n, e]`` by ``position mod stride``, as views ``[X, classes, length, e]``.

    Two groups at most: the first ``n mod stride`` classes are one token longer than the others. So no class needs
    padding or a mask.
    """
    x = x.reshape(-1, *x.shape[-2:])
    longer = x.shape[-2] % stride
    for group, size in ((x, longer), (x[:, longer:], stride - longer)):
        if size and group.shape[-2] >= size:
            # A window per round of the stride holds this group's classes: [X, length, e, classes].
            yield group.unfold(-2, size, stride).permute(0, 3, 1, 2)


def restored(outs: Iterable[Tensor], like: Tensor, stride: int) -> Tensor:
    """The groups' outputs ``[X, classes, length, e]`` in the tokens' own order, ``[..., n, e]``."""
    first, *rest = outs
    result = first.new_empty(*like.shape[:-1], first.shape[-1])
    # Each view is made after the write before it, as autograd wants.
    for place, out in zip(residues(result, stride), [first, *rest], strict=True):
        place.copy_(out)
    return result


def residue_pairs(n: int, stride: int, *, causal: bool) -> int:
    """Pairs of query and key a multiple of the stride apart, those of hidden blocks of keys left out."""
    longer = n % stride
    return longer * pairs(n // stride + 1, causal=causal) + (stride - longer) * pairs(n // stride, causal=causal)


def block_pairs(n: int, block: int, *, causal: bool) -> int:
    """Pairs of query and key in one block, those of hidden blocks of keys left out; the last block may be short."""
    whole, rest = divmod(n, block)
    return whole * pairs(block, causal=causal) + pairs(rest, causal=causal)


def same_residue(distance: Tensor, stride: int) -> Tensor:
    """Whether positions this far apart share their residue."""
    return torch.remainder(distance, stride) == 0
