"""Splits a sparse pattern into pieces that are each computed in one step, to bound memory.

A piece belongs to a band around the diagonal, to the positions that are equal modulo a stride, or to the anchors, the
first tokens, to which every query attends.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.pattern.layouts import BLOCK, block_extent, block_runs
from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.partial import mask_bias
from attention_core.ops.softmax.union import Piece, mark_merged, pieces_of_slice, union_elements

PIECES = 8
"""A piece has about 1/``PIECES`` of all queries, so that it needs little memory compared with the output."""
MIN_TOKENS = 64
"""A piece has at least this many tokens of each head, if there are so many: smaller pieces would take more time for
calls than for arithmetic.
"""
ROWS = 128
"""Maximum queries in a piece of ``column_pieces`` with a mask; more on a GPU."""


def tokens_per_piece(n: int) -> int:
    """Return the number of tokens of one head in a piece."""
    return max(1, n // PIECES, min(n, MIN_TOKENS))


def piece_slices(heads: int, blocks: int, max_blocks: int) -> Iterator[tuple[slice, range]]:
    """Yield the heads and the blocks of each piece: some blocks of all heads, or one block of some heads.

    A piece has at most ``max_blocks`` blocks in total over its heads, but at least one.
    """
    blocks_per_piece = max(1, max_blocks // heads)
    some_heads = heads if max_blocks >= heads else max(1, max_blocks)
    for head in range(0, heads, some_heads):
        for first in range(0, blocks, blocks_per_piece):
            yield slice(head, head + some_heads), range(first, min(first + blocks_per_piece, blocks))


def band_pieces(
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
        like: the queries, ``[X, n, d]``, of which only sizes and device are used; X counts all heads of the batch.
        before: the number of keys before a block's first query.
        after: the number of keys after a block's last query.
        allowed: returns which pairs are allowed, given a tensor of the distances ``i - j``; None means all.
        backward: whether gradients will be computed, which need memory too; it limits the blocks of a piece.
        block: queries per block.
        causal: whether a query attends only to keys of its block up to its own; requires ``before = after = 0``.
        allowed_pairs: used without ``allowed``: returns which pairs are allowed, given the positions of queries
            ``[r, 1]`` and keys ``[c]``. Adding ``block`` to all positions must not change the result.
    """
    heads, n = like.shape[:2]
    for first, last in block_runs(n, block, before, after):
        rows, columns = block_extent(first, n, block, before, after)
        bias = None  # frees the previous bias before the next one is made
        if allowed is not None:
            bias = _bias_by_distance(allowed, rows, columns, like)
        elif allowed_pairs is not None:
            i, j = (torch.arange(each.start, each.stop, device=like.device) for each in (rows, columns))
            bias = mask_bias(allowed_pairs(i[:, None], j), like)
        max_blocks = heads * tokens_per_piece(n) // len(rows)
        if backward:
            max_blocks = min(2 * max_blocks, heads * n // len(columns))
        max_blocks = step_size(max_blocks, like.device, numbers=len(rows) * len(columns))
        for some_heads, blocks in piece_slices(heads, last - first + 1, max_blocks):
            keys = _window_view(some_heads, columns, blocks, block)
            yield Piece(
                queries=_window_view(some_heads, rows, blocks, block),
                keys=keys,
                add=_add_to_view(keys, -(-len(columns) // block)),
                bias=bias,
                causal=causal,
            )


def _bias_by_distance(allowed: Callable[[Tensor], Tensor], rows: range, columns: range, like: Tensor) -> Tensor:
    """Return the bias ``[r, c]`` that excludes forbidden pairs; ``allowed`` is evaluated once for each distance."""
    nearest, furthest = rows.start - columns.stop + 1, rows.stop - columns.start
    biases = mask_bias(allowed(torch.arange(furthest - 1, nearest - 1, -1, device=like.device)), like)
    return biases.unfold(0, len(columns), 1).index_select(0, torch.arange(len(rows) - 1, -1, -1, device=like.device))


def band_elements(n: int, reach: int, *, block: int = BLOCK) -> tuple[int, int]:
    """Return the sizes of the largest piece of ``band_pieces`` for one head: its queries, and the pairs in its mask.

    ``reach`` is the number of keys before a block and after it, together.
    """
    if n <= 0:  # Some callers pass the number of tokens after the anchors, which is 0 if all tokens are anchors.
        return 0, 0
    block = min(block, n)
    return max(tokens_per_piece(n) // block, 1) * block, block * min(block + reach, n)


def _window_view(heads: slice, extent: range, blocks: range, step: int) -> Callable[[Tensor], Tensor]:
    """Return a function that views the tokens of each block, ``[X, n, e] -> [x, blocks, len(extent), e]``.

    ``heads`` selects x of X heads, and ``extent`` holds the positions of block 0.
    """
    start, stop = extent.start + blocks.start * step, extent.stop + blocks[-1] * step
    return lambda x: x[heads, start:stop].unfold(-2, len(extent), step).mT


def _add_to_view(view: Callable[[Tensor], Tensor], spacing: int = 1) -> Callable[[Tensor, Tensor], None]:
    """Return a function ``add(target, source)`` that adds the blocks of ``source`` to ``view(target)`` in place.

    Blocks whose indices differ by less than ``spacing`` may share tokens.
    """

    def add(target: Tensor, source: Tensor) -> None:
        for first in range(min(spacing, source.shape[1])):
            view(target)[:, first::spacing].add_(source[:, first::spacing])

    return add


def residue_pieces(like: Tensor, stride: int, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield pieces of residue classes: tokens whose positions are equal modulo the stride attend to one another.

    ``like`` and ``backward`` are as in ``band_pieces``.

    The first ``n mod stride`` classes are one token longer than the others, so they form separate pieces.
    """
    heads, n = like.shape[:2]
    longer = n % stride
    for start, size in ((0, longer), (longer, stride - longer)):
        length = len(range(start, n, stride))
        if not size or not length:
            continue
        max_blocks = heads * (2 if backward else 1) * tokens_per_piece(n) // length
        max_blocks = step_size(max_blocks, like.device, numbers=length**2)
        for some_heads, classes in piece_slices(heads, size, max_blocks):
            view = _class_view(some_heads, start, size, stride, classes)
            yield Piece(queries=view, keys=view, add=_add_to_view(view), causal=causal)


def residue_elements(n: int, stride: int) -> int:
    """Return the number of queries in the largest piece of one head's ``residue_pieces``."""
    length = -(-n // stride)
    return max(tokens_per_piece(n) // length, 1) * length


def _class_view(heads: slice, start: int, size: int, stride: int, classes: range) -> Callable[[Tensor], Tensor]:
    # ``unfold`` returns windows of ``size`` tokens, one per multiple of the stride: [heads, length, e, size]. The
    # positions of the c-th tokens of all windows are equal modulo the stride, so these tokens form one class.
    return lambda x: x[heads, start:].unfold(-2, size, stride).permute(0, 3, 1, 2)[:, classes.start : classes.stop]


def column_pieces(
    like: Tensor,
    keys: Tensor | slice,
    *,
    rows: range | None = None,
    allowed: Callable[[Tensor], Tensor] | None = None,
    key_count: Callable[[int], int] | None = None,
    causal: bool = False,
) -> Iterator[Piece]:
    """Yield pieces of queries that all attend to the same keys.

    Args:
        like: the queries, ``[X, n, d]``, of which only the sizes and the device are used.
        keys: the keys: their positions, or a slice.
        rows: the queries' consecutive positions; None means all.
        allowed: returns which of the S keys are allowed, ``bool [r, S]``, given r query positions ``[r, 1]``; None
            means all.
        key_count: given a position, returns how many of the first keys the queries before it attend to; None means
            all.
        causal: whether query i attends to the first i + 1 of the keys only; all rows are then in one piece.
    """
    n = like.shape[-2]
    rows = range(n) if rows is None else rows
    step = len(rows) if causal else min(ROWS, column_piece_rows(n)) if allowed else column_piece_rows(n)
    key_total = len(keys) if isinstance(keys, Tensor) else len(range(n)[keys])
    step = step_size(step, like.device, numbers=len(like) * key_total)

    def select(x: Tensor, key_index: Tensor | slice) -> Tensor:
        return x[:, None, key_index]

    def add(target: Tensor, source: Tensor, key_index: Tensor | slice) -> None:
        if isinstance(key_index, slice):
            target[:, key_index].add_(source[:, 0])
        else:
            target.index_add_(1, key_index, source[:, 0])

    for start in rows[::step]:
        stop = min(start + step, rows.stop)
        bias, key_index = None, keys
        if key_count is not None and isinstance(keys, Tensor):
            key_index = keys[: key_count(stop)]
            if not len(key_index):
                continue
        if allowed is not None:
            allowed_rows = allowed(torch.arange(start, stop, dtype=torch.int32, device=like.device)[:, None])
            bias = mask_bias(allowed_rows if isinstance(key_index, slice) else allowed_rows[:, : len(key_index)], like)
        key_view, add_to_keys = partial(select, key_index=key_index), partial(add, key_index=key_index)
        yield Piece(queries=_row_view(start, stop), keys=key_view, add=add_to_keys, bias=bias, causal=causal)


def column_piece_rows(n: int) -> int:
    """Return the number of queries in a piece of ``column_pieces`` without a mask."""
    return max(tokens_per_piece(n), BLOCK)


def _row_view(start: int, stop: int) -> Callable[[Tensor], Tensor]:
    return lambda x: x[:, None, start:stop]


def anchored_pieces(
    like: Tensor,
    *,
    anchors: int,
    causal: bool,
    other_pieces: Callable[[Tensor], Iterable[Piece]],
    first_keys: int | None = None,
    allowed: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[Piece]:
    """Yield the pieces of a pattern in which every query attends to the anchors, which are the first tokens.

    ``other_pieces`` gives the pairs of the other tokens. Each pair is in exactly one piece.

    Args:
        like: the queries, ``[X, n, d]``, of which only the sizes and the device are used.
        anchors: how many first tokens are anchors; at most n of them are used.
        causal: whether query i attends to keys 0..i only; the anchors then attend to one another alone.
        other_pieces: returns the pieces among the other tokens, given their queries.
        first_keys: the anchors' queries attend only to this number of first keys; ignored if causal. None means all.
        allowed: returns which of the first keys the anchors' queries may attend to, ``[r, first_keys]``, given query
            positions ``[r, 1]``; None means all.
    """
    n = like.shape[-2]
    anchors = min(anchors, n)
    if anchors and causal:
        yield from column_pieces(like, slice(anchors), rows=range(anchors), causal=True)
    elif anchors:
        keys = slice(n if first_keys is None else first_keys)
        yield from column_pieces(like, keys, rows=range(anchors), allowed=allowed)
    if anchors < n:
        yield from pieces_of_slice(other_pieces(like[:, anchors:]), anchors)
        if anchors:
            yield from mark_merged(column_pieces(like, slice(anchors), rows=range(anchors, n)))


def anchor_pairs(n: int, anchors: int, *, first_keys: int, causal: bool) -> int:
    """Return the number of pairs in the pieces of ``anchored_pieces``, without ``other_pieces``.

    Args:
        n: number of tokens.
        anchors: how many first tokens are anchors, at most n.
        first_keys: how many first keys the anchors' queries can attend to; ignored if causal.
        causal: whether query i attends to keys 0..i only.
    """
    return (n_pairs(anchors, causal=True) if causal else anchors * first_keys) + (n - anchors) * anchors


def anchored_elements(n: int, d: int, anchors: int, *, rows: int, mask: int) -> int:
    """Return the peak elements of ``union_attention`` with ``anchored_pieces`` for one head.

    Args:
        n: number of tokens.
        d: head size.
        anchors: how many first tokens are anchors, at most n.
        rows: the number of queries in the largest piece of ``other_pieces``.
        mask: the number of pairs in the largest mask.
    """
    merged = min(column_piece_rows(n), n - anchors) if anchors else 0
    return union_elements(n, d, rows=max(anchors, rows), mask=mask, merged_rows=merged)


def residue_pairs(n: int, stride: int, *, causal: bool) -> int:
    """Count the computed pairs of tokens that are a multiple of the stride apart.

    If causal, later keys are skipped as in ``n_pairs``.
    """
    longer = n % stride
    return longer * n_pairs(n // stride + 1, causal=causal) + (stride - longer) * n_pairs(n // stride, causal=causal)


def block_pairs(n: int, block: int, *, causal: bool) -> int:
    """Count the computed pairs of tokens in the same block; the last block may be short.

    If causal, later keys are skipped as in ``n_pairs``.
    """
    whole, rest = divmod(n, block)
    return whole * n_pairs(block, causal=causal) + n_pairs(rest, causal=causal)
