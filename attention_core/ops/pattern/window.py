"""Attention to a window: the keys at most ``reach`` tokens before or after a query, or before it only if causal."""

from collections.abc import Iterator
from functools import partial

from torch import Tensor

from attention_core.ops.pattern.layouts import BLOCK, window_pairs
from attention_core.ops.pattern.pieces import band, band_elements
from attention_core.ops.softmax.blockwise import pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.union import Piece, union_attention, union_elements


def in_window(distance: Tensor, reach: int, *, causal: bool) -> Tensor:
    """Check which distances ``i - j`` lie in the window."""
    return (distance <= reach) & (distance >= (0 if causal else -reach))


def window_pieces(like: Tensor, reach: int, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield blocks of queries with the keys of their windows, for ``union_attention``."""
    after, allowed = 0 if causal else reach, partial(in_window, reach=reach, causal=causal)
    return band(like, before=reach, after=after, allowed=allowed, backward=backward)


def window_size(n: int, reach: int, *, causal: bool) -> tuple[int, int, int]:
    """Return the pairs in all pieces of one head, and the queries and pairs of the largest piece."""
    after = 0 if causal else reach
    rows, mask = band_elements(n, reach + after)
    return window_pairs(n, block=BLOCK, before=reach, after=after), rows, mask


def window_attention(q: Tensor, k: Tensor, v: Tensor, reach: int, *, causal: bool) -> Tensor:
    """Return softmax attention to the window, ``[..., n, d_v]``: O(n w d) time, O(n d) memory."""
    if reach >= q.shape[-2] - 1:
        return exact_attention(q, k, v, causal=causal)
    return union_attention(partial(window_pieces, reach=reach, causal=causal), q, k, v)


def window_cost(n: int, d: int, reach: int, *, causal: bool) -> tuple[int, int]:
    """Return multiply-adds and peak elements of ``window_attention`` for one head."""
    if reach >= n - 1:
        return 2 * d * pairs(n, causal=causal), n * (d + 1)
    within, rows, mask = window_size(n, reach, causal=causal)
    return 2 * d * within, union_elements(n, d, rows=rows, mask=mask)
