"""Attention within classes of pixels: a class contains every s-th pixel of every s-th row, where s is the stride.

Pixels are numbered row by row, and the last row of the image may be short.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.pattern.pieces import piece_slices, tokens_per_piece
from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.union import Piece, union_elements


def same_class(i: Tensor, j: Tensor, stride: int, columns: int) -> Tensor:
    """Return which pairs of pixels are in one class: their rows and columns differ by multiples of the stride.

    Args:
        i: positions of queries.
        j: positions of keys, broadcast with ``i``.
        stride: the distance of neighbouring rows and of neighbouring columns of a class.
        columns: the number of columns of the image.
    """
    # The residues of queries and of keys are computed first, so that only booleans are stored for all pairs. Residues
    # of the differences i - j would be integers for all pairs, which take eight times as much memory.
    return (i // columns % stride == j // columns % stride) & (i % columns % stride == j % columns % stride)


def pixel_classes(like: Tensor, stride: int, columns: int, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield pieces for ``union_attention``; each has classes (see ``same_class``) of one size.

    Args:
        like: queries ``[X, n, d]``, for their sizes and device.
        stride: the distance of neighbouring rows and of neighbouring columns of a class.
        columns: the number of columns of the image.
        causal: whether a query attends to the keys up to its own only.
        backward: whether gradients will be computed, which need memory too.
    """
    heads, n = like.shape[:2]
    order, start = _positions_by_class(n, stride, columns, like.device), 0
    for size, count in sorted(class_sizes(n, stride, columns).items()):
        members = order[start : start + size * count].view(count, size)
        start += size * count
        max_classes = heads * (2 if backward else 1) * tokens_per_piece(n) // size
        max_classes = step_size(max_classes, like.device, numbers=size**2)
        for head_slice, class_range in piece_slices(heads, count, max_classes):
            index = members[class_range.start : class_range.stop]
            yield Piece(
                queries=partial(_read_view, heads=head_slice, index=index),
                keys=partial(_read_view, heads=head_slice, index=index),
                add=partial(_add, heads=head_slice, index=index),
                write=partial(_write, heads=head_slice, index=index),
                causal=causal,
            )


def _positions_by_class(n: int, stride: int, columns: int, device: torch.device) -> Tensor:
    """Return all positions, sorted by the size of their class, then by class, then by position, ``int64 [n]``."""
    position = torch.arange(n, device=device)
    row, column = position // columns % stride, position % columns % stride
    _, index, sizes = torch.unique(row * columns + column, return_inverse=True, return_counts=True)
    order = index.argsort(stable=True)
    return order[sizes[index[order]].argsort(stable=True)]


def _read_view(x: Tensor, *, heads: slice, index: Tensor) -> Tensor:
    return x[heads, index]  # [x, classes, size, e], where x is the number of heads


def _add(target: Tensor, source: Tensor, *, heads: slice, index: Tensor) -> None:
    target[heads].index_add_(1, index.flatten(), source.flatten(1, 2))


def _write(target: Tensor, source: Tensor, *, heads: slice, index: Tensor) -> None:
    target[heads].index_copy_(1, index.flatten(), source.flatten(1, 2))


def class_sizes(n: int, stride: int, columns: int) -> Counter[int]:
    """Return how many classes there are of each size, for n pixels."""
    rows, short_row = divmod(n, columns)
    row_classes = Counter((len(range(a, rows, stride)), a == rows % stride) for a in range(min(stride, rows + 1)))
    widths = ((len(range(b, columns, stride)), len(range(b, short_row, stride))) for b in range(min(stride, columns)))
    column_classes = Counter(widths)
    sizes: Counter[int] = Counter()
    for (full_width, has_short_row), a in row_classes.items():
        for (class_width, short_width), b in column_classes.items():
            sizes[full_width * class_width + has_short_row * short_width] += a * b
    del sizes[0]
    return sizes


def class_cost(n: int, d: int, stride: int, columns: int, *, causal: bool) -> tuple[int, int]:
    """Return multiply-adds and peak elements of attention within the classes for one head."""
    sizes = class_sizes(n, stride, columns)
    rows = max(max(tokens_per_piece(n) // size, 1) * size for size in sizes)
    products = sum(count * n_pairs(size, causal=causal) for size, count in sizes.items())
    # 2 n counts the int64 positions, each as large as two elements. 3 rows d counts copies of the queries, keys and
    # values of a piece.
    return 2 * d * products, union_elements(n, d, rows=rows) + 2 * n + 3 * rows * d
