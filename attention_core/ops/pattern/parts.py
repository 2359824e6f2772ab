"""Attention to some of the keys (a part): to those in the query's own block, or to one key for each earlier block."""

from collections.abc import Iterator

from torch import Tensor

from attention_core.ops.pattern.layouts import gathered, residues, restored, windows
from attention_core.ops.softmax.partial import Part, partial_attention, placed


def own_block(q: Tensor, k: Tensor, v: Tensor, *, block: int, causal: bool) -> Part:
    """Compute partial attention to the keys of the query's own block, O(n b d).

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        block: tokens per block, counted from the first; the last may have fewer.
        causal: whether a query attends to the keys up to its own only.
    """
    groups = windows(q, k, v, block=block)
    return placed((partial_attention(g.q, g.k, g.v, causal=causal) for g in groups), lambda outs: gathered(outs, q))


def earlier_blocks(q: Tensor, k: Tensor, v: Tensor, *, block: int) -> Part:
    """Compute partial attention of each query after the first block to one key for each earlier block, O(n² d / b).

    The queries at the same place in their blocks, for example the first of each, form a causal attention matrix over
    the blocks' keys: each block sees one more key than the block before. So the causal kernel needs no mask.

    Args:
        q: ``[..., n, d]``, n > ``block``.
        k: ``[..., m, d]``, one key per block; the last block's key is not used.
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
