"""Sink attention: each query attends to a local window and to the first few tokens, the sinks."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.pattern.pieces import anchor_pairs, anchored_elements, anchored_pieces
from attention_core.ops.pattern.primitives import mask_and_primitives
from attention_core.ops.pattern.window import window_piece_counts, window_pieces
from attention_core.ops.softmax.masked import distances, masked_softmax, positions, scores
from attention_core.ops.softmax.union import Piece, union_attention
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class SinkParams(Params):
    """Settings of sink attention."""

    window: int = param(
        16,
        low=1,
        high=4096,
        scale="log",
        help="Number w of tokens in the window, which ends at the query's own token. Without a causal mask, the "
        "window extends equally far to both sides.",
        budget=True,
    )
    sinks: int = param(
        4,
        low=0,
        high=64,
        help="Number s of sinks, the tokens at the start of the text to which every query can attend.",
    )


def rule_masks(n: int, p: SinkParams, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of each rule of the pattern by the rule's name, ``bool [n, n]`` each."""
    distance = distances(n, device)  # i - j, [n, n]
    sinks = (torch.arange(n, device=device) < p.sinks).expand(n, n)  # true if key j is a sink
    return {"window": distance.abs() < p.window, "sink": sinks}


mask, primitives = mask_and_primitives(rule_masks)


def weights(q: Tensor, k: Tensor, p: SinkParams, *, causal: bool) -> Tensor:
    """Compute softmax over the window and the first tokens, ``[..., n, n]``."""
    i, j = positions(q.shape[-2], q.device)
    allowed = ((i - j).abs() < p.window) | (j < p.sinks)
    return masked_softmax(scores(q, k), allowed & (j <= i) if causal else allowed)


def attend(q: Tensor, k: Tensor, v: Tensor, p: SinkParams, *, causal: bool) -> Tensor:
    """Merge attention to the s sinks with attention to the window of size w: O(n (w + s) d) time, O(n d) memory."""

    def allowed_first_keys(i: Tensor) -> Tensor:
        j = torch.arange(first_keys(q.shape[-2], p), dtype=i.dtype, device=i.device)
        return (j < p.sinks) | (j - i < p.window)

    def pieces(like: Tensor, *, backward: bool) -> Iterator[Piece]:
        window = partial(window_pieces, reach=p.window - 1, causal=causal, backward=backward)
        anchors = partial(anchored_pieces, anchors=p.sinks, first_keys=first_keys(q.shape[-2], p))
        return anchors(like, causal=causal, other_pieces=window, allowed=allowed_first_keys)

    return union_attention(pieces, q, k, v)


def first_keys(n: int, p: SinkParams) -> int:
    """Return the number of first keys that the queries of the sinks can attend to if not causal."""
    return min(p.sinks + p.window - 1, n)


def cost(n: int, d: int, p: SinkParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v over the pairs of all steps; memory for the output and one step."""
    sinks = min(p.sinks, n)
    window_pairs, rows, mask = window_piece_counts(n - sinks, p.window - 1, causal=causal)
    pairs = anchor_pairs(n, sinks, first_keys=first_keys(n, p), causal=causal) + window_pairs
    peak = anchored_elements(n, d, sinks, rows=rows, mask=mask if causal else max(mask, sinks * first_keys(n, p)))
    return Cost(multiply_adds=2 * pairs * d, peak_elements=peak)


VARIANT = Variant(
    __name__,
    title="Attention sinks",
    summary="Each query attends to a local window and to the first tokens of the text (sinks), on which trained "
    "models put much weight.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"S_i = \{l : |i-l| < w\} \cup \{l : l < s\}",
    complexity="n (w + s) d",
    params=SinkParams,
    pairs="n (2 w - 1 + s)",
    approximates="softmax",
    note="StreamingLLM removes the tokens between the sinks and the window from the cache and renumbers the positions "
    "of the others. Here, queries and keys keep their original positions.",
    source=Paper(
        "Efficient Streaming Language Models with Attention Sinks",
        2023,
        "https://arxiv.org/abs/2309.17453",
        authors="Xiao et al.",
    ),
    special_cases=(SpecialCase("softmax", {"window": TOKENS}),),
)
