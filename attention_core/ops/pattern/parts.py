"""Softmax attention to some of the keys: to the keys of the query's own block, or to one key for each earlier block.

The functions return outputs and log-sum-exps, so that ``merge_partial_softmax`` can merge them with attention to other
keys.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from attention_core.ops.pattern.layouts import residue_groups, restore_token_order
from attention_core.ops.softmax.partial import Part, join_parts, partial_attention


def own_block_attention(q: Tensor, k: Tensor, v: Tensor, *, block: int, causal: bool) -> Part:
    """Compute partial attention to the keys of the query's own block, O(n b d).

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        block: tokens per block, counted from the first; the last may have fewer.
        causal: whether a query attends to the keys up to its own only.
    """
    n, whole = q.shape[-2], q.shape[-2] // block * block  # the blocks of full size contain the first ``whole`` tokens

    def parts() -> Iterator[Part]:
        for start, stop, size in ((0, whole, block), (whole, n, n - whole)):
            if start < stop:
                shape = -1, (stop - start) // size, size
                blocks = (x[..., start:stop, :].reshape(*shape, x.shape[-1]) for x in (q, k, v))
                yield partial_attention(*blocks, causal=causal)

    def join(outputs: list[Tensor]) -> Tensor:
        rows = [x.reshape(*q.shape[:-2], -1, x.shape[-1]) for x in outputs]
        return rows[0] if len(rows) == 1 else torch.cat(rows, -2)

    return join_parts(parts(), join)


def earlier_blocks_attention(q: Tensor, k: Tensor, v: Tensor, *, block: int) -> Part:
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
    later_queries = q[..., block:, :]
    keys, values = (x.reshape(-1, 1, *x.shape[-2:]) for x in (k, v))

    def parts() -> Iterator[Part]:
        for queries in residue_groups(later_queries, block):
            classes, blocks = queries.shape[1:3]
            keys_and_values = (x[..., :blocks, :].expand(-1, classes, -1, -1) for x in (keys, values))
            yield partial_attention(queries, *keys_and_values, causal=True)

    return join_parts(parts(), lambda outputs: restore_token_order(outputs, later_queries, block))
