"""Views that group the tokens, so that dense attention kernels can compute a sparse pattern.

A band around the diagonal is cut into blocks of queries, each with the keys that it can attend to. For strided
patterns, tokens are grouped by their position modulo the stride, so that tokens a multiple of the stride apart become
neighbours.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 32
"""Queries in one block of a band. Smaller blocks compute fewer pairs outside the band; larger ones run faster."""


class Group(NamedTuple):
    """Blocks of one shape for a fused kernel, ``kernel(g.q, g.k, g.v, mask=g.mask)``; X counts batch entries and heads.

    Attributes:
        q: ``[X, blocks, rows, d]``, a view.
        k: ``[X, blocks, columns, d]``, a view; neighbouring blocks overlap.
        v: ``[X, blocks, columns, d_v]``, a view; neighbouring blocks overlap.
        mask: ``bool [rows, columns]``, or None where every pair is allowed.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None


def window_groups(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    block: int,
    before: int = 0,
    after: int = 0,
    allowed: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[Group]:
    """Cut the queries into blocks, each with the keys from ``before`` tokens before it to ``after`` tokens after it.

    All blocks whose keys lie inside the sequence form one group of overlapping views. Each block at an edge forms a
    group of its own with fewer keys, so that nothing is padded or copied. Groups are in the order of their rows.

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        block: queries per block.
        before: the number of keys before a block's first query.
        after: the number of keys after a block's last query.
        allowed: returns which pairs are allowed, given a tensor of the distances ``i - j``; None means all.
    """
    n = q.shape[-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    position = torch.arange(n, dtype=torch.int32, device=q.device)
    for first, last in block_runs(n, block, before, after):
        rows, columns = block_extent(first, n, block, before, after)
        end = (last - first) * block  # tokens from the start of block ``first`` to that of block ``last``
        i, j = position[rows.start : rows.stop, None], position[columns.start : columns.stop]
        yield Group(
            q[:, rows.start : rows.stop + end].unfold(-2, len(rows), block).mT,
            k[:, columns.start : columns.stop + end].unfold(-2, len(columns), block).mT,
            v[:, columns.start : columns.stop + end].unfold(-2, len(columns), block).mT,
            None if allowed is None else allowed(i - j),
        )


def block_extent(index: int, n: int, block: int, before: int, after: int) -> tuple[range, range]:
    """Return the positions of one block's queries and of the keys that they can attend to, as in ``window_groups``."""
    start, stop = index * block, min((index + 1) * block, n)
    return range(start, stop), range(max(start - before, 0), min(stop + after, n))


def block_runs(n: int, block: int, before: int, after: int) -> Iterator[tuple[int, int]]:
    """Yield the runs, which are consecutive blocks of one shape, as pairs of the first and the last block, in order.

    Arguments as in ``window_groups``.
    """
    blocks = -(-n // block)
    first_full = -(-before // block)  # the first block whose keys start inside the sequence
    end_full = (n - after) // block  # the first block whose queries or keys would reach beyond the end of the sequence
    if first_full >= end_full:
        first_full = end_full = blocks
    yield from ((b, b) for b in range(first_full))
    if first_full < end_full:
        yield first_full, end_full - 1
    yield from ((b, b) for b in range(end_full, blocks))


def window_pairs(n: int, *, block: int, before: int = 0, after: int = 0) -> int:
    """Return the number of pairs in all groups of ``window_groups``, including pairs that the mask excludes."""
    extents = (block_extent(b, n, block, before, after) for b in range(-(-n // block)))
    return sum(len(rows) * len(columns) for rows, columns in extents)


def join_groups(outputs: list[Tensor], like: Tensor) -> Tensor:
    """Join the groups' outputs ``[X, blocks, rows, e]`` to ``[..., n, e]`` with the leading axes of ``like``."""
    rows = [out.reshape(out.shape[0], -1, out.shape[-1]) for out in outputs]
    return (rows[0] if len(rows) == 1 else torch.cat(rows, 1)).reshape(*like.shape[:-1], -1)


def residue_groups(x: Tensor, stride: int) -> Iterator[Tensor]:
    """Yield the tokens of ``[..., n, e]`` by ``position mod stride``, as views ``[X, classes, length, e]``.

    There are at most two groups, since the first ``n mod stride`` classes are one token longer than the others. No
    class needs padding or a mask.
    """
    x = x.reshape(-1, *x.shape[-2:])
    longer_classes = x.shape[-2] % stride
    for group, size in ((x, longer_classes), (x[:, longer_classes:], stride - longer_classes)):
        if size and group.shape[-2] >= size:
            # ``unfold`` returns one window of ``size`` tokens per multiple of the stride, [X, length, e, classes]. The
            # positions of the c-th tokens of all windows are equal modulo the stride, so these tokens form one class.
            yield group.unfold(-2, size, stride).permute(0, 3, 1, 2)


def restore_token_order(outputs: Iterable[Tensor], like: Tensor, stride: int) -> Tensor:
    """Put the groups' outputs ``[X, classes, length, e]`` into the order of the tokens, ``[..., n, e]``."""
    first, *others = outputs
    result = first.new_empty(*like.shape[:-1], first.shape[-1])
    # Autograd does not allow writing to a view that was made before the last write to ``result``, so
    # ``residue_groups`` makes each view just before it is written.
    for view, out in zip(residue_groups(result, stride), [first, *others], strict=True):
        view.copy_(out)
    return result
