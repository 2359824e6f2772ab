"""Patterns with anchors: the first tokens of the sequence, to which every token attends."""

from collections.abc import Callable, Iterable, Iterator

from torch import Tensor

from attention_core.ops.pattern.pieces import columns, columns_rows
from attention_core.ops.softmax.blockwise import pairs
from attention_core.ops.softmax.union import Piece, among, merging, union_elements


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
    """Return the most numbers alive for one head.

    Args:
        n: number of tokens.
        d: head size.
        anchors: how many first tokens are anchors, at most n.
        rows: the number of queries in the largest piece of ``rest``.
        mask: the number of pairs in the largest mask.
    """
    merged = min(columns_rows(n), n - anchors) if anchors else 0
    return union_elements(n, d, rows=max(anchors, rows), mask=mask, again=merged)
