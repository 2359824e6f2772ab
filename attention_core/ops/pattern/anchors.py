"""Neighbours joined with anchors: the first tokens of the sequence, which every token sees."""

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
    """Every query sees the anchors and what ``rest`` adds; each pair is in one piece.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        anchors: how many first tokens are anchors; those beyond n do not exist.
        causal: whether query i sees keys 0..i only; the anchors then see just one another.
        rest: the pieces of the other queries and keys, given those queries.
        seen: how many keys, from the first, the anchors' own queries see at most, if not causal; None means all.
        allowed: which of these, of positions ``[r, 1]``; None means all.
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
    """Pairs of query and key that ``anchored`` holds besides ``rest``.

    Args:
        n: number of tokens.
        anchors: how many first tokens are anchors, at most n.
        first_keys: keys that the anchors see.
        causal: whether query i sees keys 0..i only.
    """
    return (pairs(anchors, causal=True) if causal else anchors * first_keys) + (n - anchors) * anchors


def anchored_elements(n: int, d: int, anchors: int, *, rows: int, mask: int) -> int:
    """Most numbers alive for one head.

    Args:
        n: number of tokens.
        d: head size.
        anchors: how many first tokens are anchors, at most n.
        rows: queries in the largest piece of ``rest``.
        mask: pairs in the largest mask.
    """
    merged = min(columns_rows(n), n - anchors) if anchors else 0
    return union_elements(n, d, rows=max(anchors, rows), mask=mask, again=merged)
