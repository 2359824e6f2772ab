"""Longformer attention: a window, possibly dilated, and global tokens that attend to all and are attended to by all."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.pattern.pieces import anchor_pairs, anchored_elements, anchored_pieces
from attention_core.ops.pattern.pixel_classes import same_class
from attention_core.ops.pattern.primitives import mask_and_primitives
from attention_core.ops.pattern.window import (
    is_in_square,
    square_piece_counts,
    square_pieces,
    window_piece_counts,
    window_pieces,
)
from attention_core.ops.softmax.masked import distances, masked_softmax, pixel_offsets, positions, scores
from attention_core.ops.softmax.union import Piece, pieces_of_slice, union_attention
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class LongformerParams(Params):
    """Settings of Longformer attention."""

    window: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Number w of tokens that a query can attend to on each side of its own position.",
        budget=True,
    )
    dilation: int = param(
        1,
        low=1,
        high=64,
        scale="log",
        help="Distance between neighbouring keys of the window. A distance of 2 skips every other token, so the window "
        "reaches twice as far.",
    )
    global_tokens: int = param(
        1,
        low=0,
        high=64,
        help="Number g of global tokens. They are the first tokens of the text: all tokens attend to them, and they "
        "attend to all tokens.",
    )
    columns: int = param(
        0,
        low=0,
        high=1024,
        help="Number of columns of an image whose pixels are the tokens, row by row. The window is then a square of "
        "pixels. At 0, the tokens form a single line, as in a text.",
    )


def rule_masks(n: int, p: LongformerParams, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of each rule of the pattern by the rule's name, ``bool [n, n]`` each."""
    if p.columns:
        i, j = positions(n, device)
        in_window = is_in_square(i, j, p.window * p.dilation, p.columns, causal=False)
        in_window &= same_class(i, j, p.dilation, p.columns)
    else:
        distance = distances(n, device)  # i - j, [n, n]
        in_window = (distance.abs() <= p.window * p.dilation) & (distance % p.dilation == 0)
    is_global = torch.arange(n, device=device) < p.global_tokens  # [n]
    return {"window": in_window, "global": is_global | is_global[:, None]}


mask, primitives = mask_and_primitives(rule_masks)


def weights(q: Tensor, k: Tensor, p: LongformerParams, *, causal: bool) -> Tensor:
    """Compute softmax over the dilated window (a square in an image) and the global tokens, ``[..., n, n]``."""
    i, j = positions(q.shape[-2], q.device)
    allowed = (i < p.global_tokens) | (j < p.global_tokens)
    rows, columns = pixel_offsets(q.shape[-2], p.columns, q.device)
    reach, dilation = p.window * p.dilation, p.dilation
    allowed |= (rows.abs() <= reach) & (columns.abs() <= reach) & (rows % dilation == 0) & (columns % dilation == 0)
    return masked_softmax(scores(q, k), allowed.tril() if causal else allowed)


def attend(q: Tensor, k: Tensor, v: Tensor, p: LongformerParams, *, causal: bool) -> Tensor:
    """Compute the output: merge the attention of the g global tokens, the attention to them, and that in the window w.

    It takes O(n (w + g) d) time and O(n d) memory.
    """

    def pieces(like: Tensor, *, backward: bool) -> Iterator[Piece]:
        other_pieces = partial(dilated_square if p.columns else dilated_band, p=p, causal=causal, backward=backward)
        return anchored_pieces(like, anchors=p.global_tokens, causal=causal, other_pieces=other_pieces)

    return union_attention(pieces, q, k, v)


def dilated_band(like: Tensor, p: LongformerParams, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield the pieces (steps of the computation) of the window in a text, for queries ``like``, ``[X, n, d]``.

    Tokens whose positions are equal modulo the dilation form a text in which the window has no gaps. ``backward`` is
    whether gradients will be computed.
    """
    for offset in range(min(p.dilation, like.shape[-2])):
        pieces = window_pieces(like[:, offset :: p.dilation], p.window, causal=causal, backward=backward)
        yield from pieces_of_slice(pieces, offset, p.dilation)


def dilated_square(like: Tensor, p: LongformerParams, *, causal: bool, backward: bool) -> Iterator[Piece]:
    """Yield the pieces of the window in an image: squares in which a mask excludes the gaps.

    ``like`` is ``[X, n, d]``; ``backward`` is whether gradients will be computed.
    """
    return square_pieces(
        like,
        p.window * p.dilation,
        p.columns,
        causal=causal,
        backward=backward,
        first=p.global_tokens,
        allowed_pairs=partial(same_class, stride=p.dilation, columns=p.columns),
    )


def cost(n: int, d: int, p: LongformerParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v over the pairs of all steps; memory for the output and one step."""
    anchors = min(p.global_tokens, n)
    length, longer_classes = divmod(n - anchors, p.dilation)
    pairs = anchor_pairs(n, anchors, first_keys=n, causal=causal)
    if p.columns:
        reach = p.window * p.dilation
        pairs_in_window, rows, mask = square_piece_counts(
            n - anchors, reach, p.columns, causal=causal, first=p.global_tokens
        )
        pairs += pairs_in_window
    else:
        for classes, size in ((longer_classes, length + 1), (p.dilation - longer_classes, length)):
            pairs += classes * window_piece_counts(size, p.window, causal=causal)[0]
        _, rows, mask = window_piece_counts(-(-(n - anchors) // p.dilation), p.window, causal=causal)
    peak = anchored_elements(n, d, anchors, rows=rows, mask=mask)
    return Cost(multiply_adds=2 * pairs * d, peak_elements=peak)


VARIANT = Variant(
    __name__,
    title="Longformer",
    summary="Each query attends to a local window, which may skip tokens, and to the first tokens of the text, which "
    "are called global tokens.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"j \in S_i \iff \left(|i-j| \le w\delta,\ j \equiv i \,(\delta)\right) \text{ or } i < g \text{ or } j < g",
    complexity="n (w + g) d",
    params=LongformerParams,
    pairs="n (2 w + 1 + 2 g)",
    approximates="softmax",
    note="The first tokens of the text are global: all tokens attend to them, and they attend to all tokens. The "
    "published model computes separate queries, keys and values for global attention. Here, global and local "
    "attention share the same queries, keys and values.",
    source=Paper(
        "Longformer: The Long-Document Transformer", 2020, "https://arxiv.org/abs/2004.05150", authors="Beltagy et al."
    ),
    special_cases=(
        SpecialCase("local", {"global_tokens": 0, "dilation": 1}, shared=("window",)),
        SpecialCase("softmax", {"window": TOKENS}),
    ),
)
