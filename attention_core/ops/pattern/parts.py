"""Partial attention by pattern: to the keys of a query's own block, of earlier blocks."""

from collections.abc import Iterator

from torch import Tensor

from attention_core.ops.pattern.layouts import gathered, residues, restored, windows
from attention_core.ops.softmax.partial import Part, partial_attention, placed


def own_block(q: Tensor, k: Tensor, v: Tensor, *, block: int, causal: bool) -> Part:
    """Partial attention to the keys of the query's own block, O(n b d).

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        block: tokens per block, counted from the first; the last may have fewer.
        causal: whether a query sees the keys up to its own only.
    """
    groups = windows(q, k, v, block=block)
    return placed((partial_attention(g.q, g.k, g.v, causal=causal) for g in groups), lambda outs: gathered(outs, q))


def earlier_blocks(q: Tensor, k: Tensor, v: Tensor, *, block: int) -> Part:
    """Partial attention of every query behind the first block to one key for each block before its own, O(n² d / b).

    The queries at one place of their blocks, the first of each say, see one key more from block to block: with the
    future hidden among them, no mask is needed.

    Args:
        q: ``[..., n, d]``, n > ``block``.
        k: ``[..., m, d]``, one key per block, the last block's unseen.
        v: ``[..., m, d_v]``.
        block: tokens per block, counted from the first; the last may have fewer.

    Returns:
        The output ``[..., n - block, d_v]`` and the log-sum-exp ``[..., n - block, 1]``.
    """
    later = q[..., block:, :]
    keys, values = (x.reshape(-1, 1, *x.shape[-2:]) for x in (k, v))

    def parts() -> Iterator[Part]:
        for places in residues(later, block):
            each, blocks = places.shape[1:3]
            seen = (x[..., :blocks, :].expand(-1, each, -1, -1) for x in (keys, values))
            yield partial_attention(places, *seen, causal=True)

    return placed(parts(), lambda outs: restored(outs, later, block))
