"""Attention to a window: the keys at most ``reach`` tokens before or after a query, or only before it if causal.

In an image, a window along the row contains pixels to the left and right, and a square window pixels in all directions.
"""

from collections.abc import Callable, Iterator
from functools import partial

from torch import Tensor

from attention_core.ops.pattern.layouts import BLOCK, window_pairs
from attention_core.ops.pattern.pieces import band_elements, band_pieces
from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.union import Piece, union_attention, union_elements


def is_in_window(distance: Tensor, reach: int, *, causal: bool) -> Tensor:
    """Check which distances ``i - j`` lie in the window."""
    return (distance <= reach) & (distance >= (0 if causal else -reach))


def window_pieces(like: Tensor, reach: int, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield blocks of queries with the keys of their windows, for ``union_attention``.

    ``like`` and ``backward`` are as in ``square_pieces``.
    """
    after, allowed = 0 if causal else reach, partial(is_in_window, reach=reach, causal=causal)
    return band_pieces(like, before=reach, after=after, allowed=allowed, backward=backward)


def window_piece_counts(n: int, reach: int, *, causal: bool) -> tuple[int, int, int]:
    """Return, for one head, the number of pairs in all pieces, and of queries and pairs in the largest piece."""
    after = 0 if causal else reach
    rows, mask = band_elements(n, reach + after)
    return window_pairs(n, block=BLOCK, before=reach, after=after), rows, mask


def window_attention(q: Tensor, k: Tensor, v: Tensor, reach: int, *, causal: bool) -> Tensor:
    """Return softmax attention to the window, ``[..., n, d_v]``, in O(n reach d) time and O(n d) memory."""
    if reach >= q.shape[-2] - 1:
        return exact_attention(q, k, v, causal=causal)
    return union_attention(partial(window_pieces, reach=reach, causal=causal), q, k, v)


def window_cost(n: int, d: int, reach: int, *, causal: bool) -> tuple[int, int]:
    """Return multiply-adds and peak elements of ``window_attention`` for one head."""
    if reach >= n - 1:
        return 2 * d * n_pairs(n, causal=causal), n * (d + 1)
    within, rows, mask = window_piece_counts(n, reach, causal=causal)
    return 2 * d * within, union_elements(n, d, rows=rows, mask=mask)


def is_in_square(i: Tensor, j: Tensor, reach: int, columns: int, *, causal: bool) -> Tensor:
    """Check which pairs of pixels are at most ``reach`` rows and columns apart; pixels are numbered row by row.

    Args:
        i: positions of queries.
        j: positions of keys, broadcast with ``i``.
        reach: the number of rows and columns on each side.
        columns: the number of columns of the image.
        causal: whether later pixels are excluded.
    """
    # Comparisons give booleans. Differences of rows or columns would be integers, which take eight times as much
    # memory.
    near = (j // columns >= i // columns - reach) & (j % columns >= i % columns - reach)
    near &= j % columns <= i % columns + reach
    near &= j <= i if causal else j // columns <= i // columns + reach
    return near


def square_attention(q: Tensor, k: Tensor, v: Tensor, reach: int, columns: int, *, causal: bool) -> Tensor:
    """Return softmax attention to a square of pixels, ``[..., n, d_v]``.

    It takes O(n reach columns d) time and O(n d) memory.
    """
    if _spans_image(q.shape[-2], reach, columns):
        return exact_attention(q, k, v, causal=causal)
    return union_attention(partial(square_pieces, reach=reach, columns=columns, causal=causal), q, k, v)


def square_cost(n: int, d: int, reach: int, columns: int, *, causal: bool) -> tuple[int, int]:
    """Return multiply-adds and peak elements of ``square_attention`` for one head."""
    if _spans_image(n, reach, columns):
        return 2 * d * n_pairs(n, causal=causal), n * (d + 1)
    within, rows, mask = square_piece_counts(n, reach, columns, causal=causal)
    return 2 * d * within, union_elements(n, d, rows=rows, mask=mask)


def _spans_image(n: int, reach: int, columns: int) -> bool:
    """Return whether a square contains the whole image from each of its pixels."""
    return reach >= max(min(columns, n), -(-n // columns)) - 1


def square_pieces(
    like: Tensor,
    reach: int,
    columns: int,
    *,
    causal: bool,
    backward: bool,
    first: int = 0,
    allowed_pairs: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Iterator[Piece]:
    """Yield blocks of ``columns`` queries, each with the keys that the squares around these queries reach.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        reach: the number of rows and columns on each side.
        columns: the number of columns of the image.
        causal: whether later pixels are excluded.
        backward: whether gradients will be computed, which need memory too.
        first: the position of the first query in the image.
        allowed_pairs: returns which pairs of positions are allowed within the squares; None means all.
    """

    def allowed(i: Tensor, j: Tensor) -> Tensor:
        i, j = i + first, j + first
        near = is_in_square(i, j, reach, columns, causal=causal)
        return near if allowed_pairs is None else near.logical_and_(allowed_pairs(i, j))

    before, after = _reach_in_tokens(reach, columns, first, causal=causal)
    return band_pieces(
        like, before=before, after=after, allowed=None, backward=backward, block=columns, allowed_pairs=allowed
    )


def square_piece_counts(n: int, reach: int, columns: int, *, causal: bool, first: int = 0) -> tuple[int, int, int]:
    """Return, for one head, the number of pairs in all pieces, and of queries and pairs in the largest piece."""
    before, after = _reach_in_tokens(reach, columns, first, causal=causal)
    rows, mask = band_elements(n, before + after, block=columns)
    mask += mask // 4  # a pair takes 4 bytes in the mask, and 1 more in the booleans it is made from
    return window_pairs(n, block=columns, before=before, after=after), rows, mask


def _reach_in_tokens(reach: int, columns: int, first: int, *, causal: bool) -> tuple[int, int]:
    """Return how many tokens the squares around ``columns`` queries reach before the first and after the last query."""
    before = reach * columns + (min(reach, columns - 1) if first % columns else 0)
    return before, 0 if causal else before
