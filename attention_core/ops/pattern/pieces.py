"""The pieces that patterns are cut into: blocks of a band, classes of residues, a few columns, a share at a time."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.pattern.layouts import BLOCK, extent, runs
from attention_core.ops.softmax.partial import lowest_bias
from attention_core.ops.softmax.union import Piece

SHARE = 8
"""Pieces hold about one part in so many of all queries, so that what is made of one is little beside the output."""
ROWS = 128
"""Queries whose masks over the columns are held at once."""


def share(n: int) -> int:
    """Tokens of a head that one piece may hold."""
    return max(1, n // SHARE)


def shares(heads: int, blocks: int, most: int) -> Iterator[tuple[slice, range]]:
    """Cut ``heads`` times ``blocks`` into pieces of so many blocks: all heads at a few blocks, or fewer heads."""
    together = max(1, most // heads)
    some = heads if most >= heads else max(1, most)
    for head in range(0, heads, some):
        for first in range(0, blocks, together):
            yield slice(head, head + some), range(first, min(first + together, blocks))


def band(
    like: Tensor,
    *,
    before: int,
    after: int,
    allowed: Callable[[Tensor], Tensor] | None,
    backward: bool,
    block: int = BLOCK,
    causal: bool = False,
) -> Iterator[Piece]:
    """Blocks of queries, each with the keys from ``before`` ahead of it to ``after`` behind it.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        before: keys ahead of a block's first query.
        after: keys behind a block's last query.
        allowed: says of the distances ``i - j``, a tensor of whole numbers, which pairs may look; None means all.
        backward: whether the keys' gradients are held, too.
        block: queries per block.
        causal: whether a query sees the keys up to its own only, where there are none but its block's.
    """
    heads, n = like.shape[:2]
    for first, last in runs(n, block, before, after):
        rows, columns = extent(first, n, block, before, after)
        bias = None  # that of the last run is gone by now
        if allowed is not None:
            bias = _by_distance(allowed, rows, columns, like)
        most = heads * share(n) // len(rows)
        if backward:
            most = min(2 * most, heads * n // len(columns))
        for some, blocks in shares(heads, last - first + 1, most):
            keys = _windows(some, columns, blocks, block)
            yield Piece(
                queries=_windows(some, rows, blocks, block),
                keys=keys,
                add=_added(keys, -(-len(columns) // block)),
                bias=bias,
                causal=causal,
            )


def _by_distance(allowed: Callable[[Tensor], Tensor], rows: range, columns: range, like: Tensor) -> Tensor:
    """The bias ``[r, c]`` that lets the allowed pairs look; each distance is asked about once."""
    nearest, furthest = rows.start - columns.stop + 1, rows.stop - columns.start
    known = lowest_bias(allowed(torch.arange(furthest - 1, nearest - 1, -1, device=like.device)), like)
    return known.unfold(0, len(columns), 1).index_select(0, torch.arange(len(rows) - 1, -1, -1, device=like.device))


def band_elements(n: int, reach: int, *, block: int = BLOCK) -> tuple[int, int]:
    """Queries in the largest piece of one head's ``band``, and pairs in its mask; ``reach`` is ``before + after``."""
    if n <= 0:  # the anchors are all there is
        return 0, 0
    block = min(block, n)
    return max(share(n) // block, 1) * block, block * min(block + reach, n)


def _windows(heads: slice, extent: range, blocks: range, step: int) -> Callable[[Tensor], Tensor]:
    """Views of equal extents, one for each block, ``[X, n, e] -> [x, blocks, len(extent), e]``."""
    start, stop = extent.start + blocks.start * step, extent.stop + blocks[-1] * step
    return lambda x: x[heads, start:stop].unfold(-2, len(extent), step).mT


def _added(view: Callable[[Tensor], Tensor], apart: int = 1) -> Callable[[Tensor, Tensor], None]:
    """Adds to a view in which blocks so far apart share no token."""

    def add(into: Tensor, what: Tensor) -> None:
        for first in range(min(apart, what.shape[1])):
            view(into)[:, first::apart].add_(what[:, first::apart])

    return add


def classes(like: Tensor, stride: int, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Tokens a multiple of the stride apart, which see one another.

    Two groups of classes at most: the first ``n mod stride`` are one token longer than the others.
    """
    heads, n = like.shape[:2]
    longer = n % stride
    for start, size in ((0, longer), (longer, stride - longer)):
        length = len(range(start, n, stride))
        if not size or not length:
            continue
        most = heads * (2 if backward else 1) * share(n) // length
        for some, chosen in shares(heads, size, most):
            view = _class_view(some, start, size, stride, chosen)
            yield Piece(queries=view, keys=view, add=_added(view), causal=causal)


def class_elements(n: int, stride: int) -> int:
    """Queries in the largest piece of one head's ``classes``."""
    length = -(-n // stride)
    return max(share(n) // length, 1) * length


def _class_view(heads: slice, start: int, size: int, stride: int, chosen: range) -> Callable[[Tensor], Tensor]:
    # A window per round of the stride holds a group's classes: [x, length, e, classes].
    return lambda x: x[heads, start:].unfold(-2, size, stride).permute(0, 3, 1, 2)[:, chosen.start : chosen.stop]


def columns(
    like: Tensor,
    chosen: Tensor | slice,
    *,
    rows: range | None = None,
    allowed: Callable[[Tensor], Tensor] | None = None,
    seen: Callable[[int], int] | None = None,
    causal: bool = False,
) -> Iterator[Piece]:
    """Queries that all look at the same keys.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        chosen: the keys: their positions, or a slice.
        rows: the queries' positions, one after the other; None means all.
        allowed: says of query positions ``[r, 1]`` which of the keys may be seen, ``[r, S]``; None means all.
        seen: says how many of the keys, from the first, the queries before a position see; None means all.
        causal: whether query i sees keys 0..i of these only; rows then stay together.
    """
    n = like.shape[-2]
    rows = range(n) if rows is None else rows
    step = len(rows) if causal else min(ROWS, columns_rows(n)) if allowed else columns_rows(n)

    def keys(x: Tensor, some: Tensor | slice) -> Tensor:
        return x[:, None, some]

    def add(into: Tensor, what: Tensor, some: Tensor | slice) -> None:
        if isinstance(some, slice):
            into[:, some].add_(what[:, 0])
        else:
            into.index_add_(1, some, what[:, 0])

    for start in rows[::step]:
        stop = min(start + step, rows.stop)
        bias, some = None, chosen
        if seen is not None and isinstance(chosen, Tensor):
            some = chosen[: seen(stop)]
            if not len(some):
                continue
        if allowed is not None:
            may = allowed(torch.arange(start, stop, dtype=torch.int32, device=like.device)[:, None])
            bias = lowest_bias(may if isinstance(some, slice) else may[:, : len(some)], like)
        here, back = partial(keys, some=some), partial(add, some=some)
        yield Piece(queries=_rows(start, stop), keys=here, add=back, bias=bias, causal=causal)


def columns_rows(n: int) -> int:
    """Queries in a piece of ``columns`` without a mask."""
    return max(share(n), BLOCK)


def _rows(start: int, stop: int) -> Callable[[Tensor], Tensor]:
    return lambda x: x[:, None, start:stop]
