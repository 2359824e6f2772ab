"""Sparse Transformer attention: each query attends to nearby keys and to regularly spaced ones.

The paper has two patterns. ``strided`` allows the window ``|i - j| <= w`` and the distances divisible by r. ``fixed``
allows the token's own block of r tokens and the last few columns of every block, the summary columns. A pair that both
rules of a pattern allow counts once. Attention to the pairs of each rule is merged exactly by log-sum-exp.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.pattern.pieces import (
    ROWS,
    band_elements,
    band_pieces,
    block_pairs,
    column_piece_rows,
    column_pieces,
    residue_elements,
    residue_pairs,
    residue_pieces,
)
from attention_core.ops.pattern.pixel_classes import class_cost, pixel_classes, same_class
from attention_core.ops.pattern.primitives import mask_and_primitives
from attention_core.ops.pattern.window import (
    is_in_square,
    is_in_window,
    square_piece_counts,
    square_pieces,
    window_piece_counts,
)
from attention_core.ops.softmax.masked import distances, masked_softmax, pixel_offsets, positions, scores
from attention_core.ops.softmax.union import Piece, mark_merged, union_attention, union_elements
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class SparseParams(Params):
    """Settings of sparse attention."""

    window: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Number w of tokens that a query can attend to on each side of its own position. Used only with the "
        "strided pattern.",
        budget=True,
    )
    stride: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Distance r between the keys beyond the window (strided pattern), or number r of tokens per block "
        "(fixed pattern).",
    )
    pattern: str = param(
        "strided",
        choices=("strided", "fixed"),
        help='Keys that a query attends to. With "strided", these are a window and all keys whose distance is a '
        'multiple of the stride. With "fixed", these are the query\'s own block and the last keys of every block, '
        "which summarise it.",
    )
    summary: int = param(
        1,
        low=1,
        high=64,
        help="Number c of keys at the end of each block that every query can attend to. Used only with the fixed "
        "pattern.",
    )
    columns: int = param(
        0,
        low=0,
        high=1024,
        help="Number of columns of an image whose pixels are the tokens, row by row. The window is then a square of "
        "pixels, and the stride applies to rows and to columns. At 0, the tokens form one line, such as a text. "
        "Used only with the strided pattern.",
    )


def in_window_not_stride(distance: Tensor, p: SparseParams, *, causal: bool) -> Tensor:
    """Return which distances ``i - j`` lie in the window but are no multiple of the stride."""
    return is_in_window(distance, p.window, causal=causal) & (distance % p.stride != 0)


def summary_positions(n: int, p: SparseParams, device: torch.device) -> Tensor:
    """Return the positions of the summary columns, ``[S]``."""
    position = torch.arange(n, device=device)
    return position[position % p.stride >= p.stride - p.summary]


def earlier_summary_count(stop: int, p: SparseParams) -> int:
    """Return how many summary columns lie in blocks before the block of query ``stop - 1``."""
    return (stop - 1) // p.stride * min(p.summary, p.stride)


def rule_masks(n: int, p: SparseParams, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of each rule of the pattern by the rule's name, ``bool [n, n]`` each."""
    distance = distances(n, device)  # i - j, [n, n]
    if p.pattern == "strided" and p.columns:
        i, j = positions(n, device)
        window = is_in_square(i, j, p.window, p.columns, causal=False)
        return {"window": window, "stride": same_class(i, j, p.stride, p.columns)}
    if p.pattern == "strided":
        return {"window": distance.abs() <= p.window, "stride": distance % p.stride == 0}
    position = torch.arange(n, device=device)
    block = position // p.stride
    is_summary = position % p.stride >= p.stride - p.summary
    return {"block": block[:, None] == block, "summary": is_summary.expand(n, n)}


mask, primitives = mask_and_primitives(rule_masks)


def weights(q: Tensor, k: Tensor, p: SparseParams, *, causal: bool) -> Tensor:
    """Compute softmax over the pairs of the pattern, ``[..., n, n]``.

    The pattern is fixed or strided. In an image, a strided pattern extends along both axes.
    """
    if p.pattern == "strided":
        rows, columns = pixel_offsets(q.shape[-2], p.columns, q.device)
        allowed = (rows.abs() <= p.window) & (columns.abs() <= p.window)
        allowed |= (rows % p.stride == 0) & (columns % p.stride == 0)
    else:
        i, j = positions(q.shape[-2], q.device)
        allowed = (i // p.stride == j // p.stride) | (j % p.stride >= p.stride - p.summary)
    return masked_softmax(scores(q, k), allowed.tril() if causal else allowed)


def attend(q: Tensor, k: Tensor, v: Tensor, p: SparseParams, *, causal: bool) -> Tensor:
    """Return the attention over all pairs that either rule allows, ``[..., n, d_v]``.

    With window w and stride r, it takes O(n (w + n / r) d) time and O(n d) memory.
    """
    strided = pixel_pieces if p.columns else strided_pieces
    make_pieces = strided if p.pattern == "strided" else fixed_pieces
    return union_attention(partial(make_pieces, p=p, causal=causal), q, k, v)


def strided_pieces(like: Tensor, p: SparseParams, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield the pieces (steps of the computation) of the strided pattern.

    First come the pairs whose distance is a multiple of the stride, then the other pairs in the window.
    ``like`` has the shape of the queries, ``[X, n, d]``. ``backward`` is whether gradients will be computed.
    """
    yield from residue_pieces(like, p.stride, causal=causal, backward=backward)
    allowed, after = partial(in_window_not_stride, p=p, causal=causal), 0 if causal else p.window
    yield from mark_merged(band_pieces(like, before=p.window, after=after, allowed=allowed, backward=backward))


def pixel_pieces(like: Tensor, p: SparseParams, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield the pieces of the strided pattern in an image; the arguments are as in ``strided_pieces``.

    First come the pixels whose row and column are a multiple of the stride away, then the rest of the square window.
    """
    yield from pixel_classes(like, p.stride, p.columns, causal=causal, backward=backward)

    def off_stride(i: Tensor, j: Tensor) -> Tensor:
        return same_class(i, j, p.stride, p.columns).logical_not_()

    window = partial(square_pieces, like, p.window, p.columns, causal=causal, backward=backward)
    yield from mark_merged(window(allowed_pairs=off_stride))


def fixed_pieces(like: Tensor, p: SparseParams, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield the pieces of the fixed pattern; the arguments are as in ``strided_pieces``.

    First come the pairs within a block, then pairs with the summary columns of other (if causal, earlier) blocks.
    """
    yield from band_pieces(like, before=0, after=0, allowed=None, backward=backward, block=p.stride, causal=causal)
    summary_keys = summary_positions(like.shape[-2], p, like.device)

    def is_other_block(i: Tensor) -> Tensor:
        return summary_keys // p.stride < i // p.stride if causal else summary_keys // p.stride != i // p.stride

    if len(summary_keys):
        key_count = partial(earlier_summary_count, p=p) if causal else None
        yield from mark_merged(column_pieces(like, summary_keys, allowed=is_other_block, key_count=key_count))


def cost(n: int, d: int, p: SparseParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v for both rules; memory for the output, one step and its mask."""
    if p.pattern == "strided" and p.columns:
        products, peak = class_cost(n, d, p.stride, p.columns, causal=causal)
        window_pairs, rows, mask = square_piece_counts(n, p.window, p.columns, causal=causal)
        peak = max(peak, union_elements(n, d, rows=0, merged_rows=rows), union_elements(n, d, rows=rows, mask=mask))
        return Cost(multiply_adds=products + 2 * d * window_pairs, peak_elements=peak)
    if p.pattern == "strided":
        window_pairs, rows, mask = window_piece_counts(n, p.window, causal=causal)
        pairs = residue_pairs(n, p.stride, causal=causal) + window_pairs
        peak = union_elements(n, d, rows=residue_elements(n, p.stride), mask=0, merged_rows=rows)
        peak = max(peak, union_elements(n, d, rows=rows, mask=mask))
    else:
        summary_count = len(summary_positions(n, p, torch.device("cpu")))
        rows = min(n, ROWS, column_piece_rows(n))
        pairs = block_pairs(n, p.stride, causal=causal)
        for start in range(0, n, rows):
            stop = min(start + rows, n)
            pairs += (stop - start) * (earlier_summary_count(stop, p) if causal else summary_count)
        peak = union_elements(n, d, rows=band_elements(n, 0, block=p.stride)[0], merged_rows=rows * (summary_count > 0))
        peak = max(peak, union_elements(n, d, rows=rows, mask=rows * summary_count) + 2 * summary_count * d)
    return Cost(multiply_adds=2 * pairs * d, peak_elements=peak)


VARIANT = Variant(
    __name__,
    title="Sparse",
    summary="Each query attends to nearby keys and to regularly spaced keys: a window and every r-th key, or its own "
    "block and the last keys of all blocks.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"S_i = \{l : |i-l| \le w\} \cup \{l : l \equiv i \pmod r\} \quad\text{or}\quad "
    r"\{l : \lfloor l/r \rfloor = \lfloor i/r \rfloor\} \cup \{l : l \bmod r \ge r - c\}",
    complexity="n (w + n / r) d",
    params=SparseParams,
    pairs="n (2 w + 1 + n / r)",
    approximates="softmax",
    source=Paper(
        "Generating Long Sequences with Sparse Transformers",
        2019,
        "https://arxiv.org/abs/1904.10509",
        authors="Child et al.",
    ),
    special_cases=(
        SpecialCase("softmax", {"window": TOKENS}),
        SpecialCase("softmax", {"stride": 1, "pattern": "strided"}),
    ),
)
