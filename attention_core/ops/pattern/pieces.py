"""Splits a sparse pattern into pieces that are each computed in one step, to bound memory.

A piece belongs to a band around the diagonal, to the positions that are equal modulo a stride, or to the anchors, the
first tokens, to which every query attends.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.pattern.layouts import BLOCK, extent, runs
from attention_core.ops.softmax.blockwise import pairs
from attention_core.ops.softmax.partial import lowest_bias
from attention_core.ops.softmax.union import Piece, among, merging, union_elements

SHARE = 8
"""A piece has about 1/``SHARE`` of all queries, so that it needs little memory compared with the output."""
ROWS = 128
"""Queries for which a mask over columns is made in one step."""


def share(n: int) -> int:
    """Return the number of tokens of one head in a piece."""
    return max(1, n // SHARE)


def shares(heads: int, blocks: int, most: int) -> Iterator[tuple[slice, range]]:
    """Cut ``heads`` times ``blocks`` into pieces of at most ``most``: all heads of a few blocks, or fewer heads."""
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
    allowed_pairs: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Iterator[Piece]:
    """Yield blocks of queries, each with the keys from ``before`` tokens before it to ``after`` tokens after it.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        before: the number of keys before a block's first query.
        after: the number of keys after a block's last query.
        allowed: returns which pairs are allowed, given a tensor of the distances ``i - j``; None means all.
        backward: whether memory is also needed for the keys' gradients.
        block: queries per block.
        causal: whether a query attends to the keys up to its own only; requires ``before = after = 0``.
        allowed_pairs: used without ``allowed``: returns which pairs are allowed, given the positions of queries
            ``[r, 1]`` and keys ``[c]``. Moving both by a block must not change the result.
    """
    heads, n = like.shape[:2]
    for first, last in runs(n, block, before, after):
        rows, columns = extent(first, n, block, before, after)
        bias = None  # frees the previous bias before the next one is made
        if allowed is not None:
            bias = _by_distance(allowed, rows, columns, like)
        elif allowed_pairs is not None:
            i, j = (torch.arange(each.start, each.stop, device=like.device) for each in (rows, columns))
            bias = lowest_bias(allowed_pairs(i[:, None], j), like)
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
    """Return the bias ``[r, c]`` that excludes all other pairs; ``allowed`` is evaluated once for each distance."""
    nearest, furthest = rows.start - columns.stop + 1, rows.stop - columns.start
    known = lowest_bias(allowed(torch.arange(furthest - 1, nearest - 1, -1, device=like.device)), like)
    return known.unfold(0, len(columns), 1).index_select(0, torch.arange(len(rows) - 1, -1, -1, device=like.device))


def band_elements(n: int, reach: int, *, block: int = BLOCK) -> tuple[int, int]:
    """Return the queries in one head's largest piece of ``band`` and the pairs in its mask; reach is before + after."""
    if n <= 0:  # all tokens are anchors
        return 0, 0
    block = min(block, n)
    return max(share(n) // block, 1) * block, block * min(block + reach, n)


def _windows(heads: slice, extent: range, blocks: range, step: int) -> Callable[[Tensor], Tensor]:
    """Return a function that views the tokens of each block, ``[X, n, e] -> [x, blocks, len(extent), e]``."""
    start, stop = extent.start + blocks.start * step, extent.stop + blocks[-1] * step
    return lambda x: x[heads, start:stop].unfold(-2, len(extent), step).mT


def _added(view: Callable[[Tensor], Tensor], apart: int = 1) -> Callable[[Tensor, Tensor], None]:
    """Return a function that adds to the tokens of a view; two blocks ``apart`` blocks apart must share no token."""

    def add(into: Tensor, what: Tensor) -> None:
        for first in range(min(apart, what.shape[1])):
            view(into)[:, first::apart].add_(what[:, first::apart])

    return add


def classes(like: Tensor, stride: int, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield classes of tokens a multiple of the stride apart, which attend to one another.

    There are at most two groups of classes: the first ``n mod stride`` classes are one token longer than the others.
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
    """Return the number of queries in the largest piece of one head's ``classes``."""
    length = -(-n // stride)
    return max(share(n) // length, 1) * length


def _class_view(heads: slice, start: int, size: int, stride: int, chosen: range) -> Callable[[Tensor], Tensor]:
    # ``unfold`` makes one window per multiple of the stride. Place c of each window belongs to class c of the group:
    # [x, length, e, classes].
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
    """Yield pieces of queries that all attend to the same keys.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        chosen: the keys: their positions, or a slice.
        rows: the queries' consecutive positions; None means all.
        allowed: returns which keys are allowed, ``[r, S]``, given query positions ``[r, 1]``; None means all.
        seen: returns the number of keys, from the first, that are visible to queries before a position; None means all.
        causal: whether query i attends to keys 0..i of these only; all rows are then in one piece.
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
    """Return the number of queries in a piece of ``columns`` without a mask."""
    return max(share(n), BLOCK)


def _rows(start: int, stop: int) -> Callable[[Tensor], Tensor]:
    return lambda x: x[:, None, start:stop]


def anchored(
    like: Tensor,
    *,
    anchors: int,
    causal: bool,
    rest: Callable[[Tensor], Iterable[Piece]],
    seen: int | None = None,
    allowed: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[Piece]:
    """Yield the pieces of a pattern in which every query attends to the anchors and to the pairs of ``rest``.

    Each pair is in exactly one piece.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        anchors: how many first tokens are anchors; at most n of them are used.
        causal: whether query i attends to keys 0..i only; the anchors then attend to one another alone.
        rest: returns the pieces among the other tokens, given their queries.
        seen: the number of keys, from the first, to which the anchors' own queries attend at most, if not causal; None
            means all.
        allowed: returns which of these keys are allowed, given query positions ``[r, 1]``; None means all.
    """
    n = like.shape[-2]
    anchors = min(anchors, n)
    if anchors and causal:
        yield from columns(like, slice(anchors), rows=range(anchors), causal=True)
    elif anchors:
        yield from columns(like, slice(n if seen is None else seen), rows=range(anchors), allowed=allowed)
    if anchors < n:
        yield from among(rest(like[:, anchors:]), anchors)
        if anchors:
            yield from merging(columns(like, slice(anchors), rows=range(anchors, n)))


def anchor_pairs(n: int, anchors: int, *, first_keys: int, causal: bool) -> int:
    """Return the number of pairs in the pieces of ``anchored``, without ``rest``.

    Args:
        n: number of tokens.
        anchors: how many first tokens are anchors, at most n.
        first_keys: the number of keys to which each anchor attends.
        causal: whether query i attends to keys 0..i only.
    """
    return (pairs(anchors, causal=True) if causal else anchors * first_keys) + (n - anchors) * anchors


def anchored_elements(n: int, d: int, anchors: int, *, rows: int, mask: int) -> int:
    """Return the peak number of elements in memory for one head.

    Args:
        n: number of tokens.
        d: head size.
        anchors: how many first tokens are anchors, at most n.
        rows: the number of queries in the largest piece of ``rest``.
        mask: the number of pairs in the largest mask.
    """
    merged = min(columns_rows(n), n - anchors) if anchors else 0
    return union_elements(n, d, rows=max(anchors, rows), mask=mask, again=merged)


def residue_pairs(n: int, stride: int, *, causal: bool) -> int:
    """Count the pairs a multiple of the stride apart; if causal, without the blocks of later keys that are skipped."""
    longer = n % stride
    return longer * pairs(n // stride + 1, causal=causal) + (stride - longer) * pairs(n // stride, causal=causal)


def block_pairs(n: int, block: int, *, causal: bool) -> int:
    """Count the pairs within the blocks (the last may be short); if causal, without skipped blocks of later keys."""
    whole, rest = divmod(n, block)
    return whole * pairs(block, causal=causal) + pairs(rest, causal=causal)
