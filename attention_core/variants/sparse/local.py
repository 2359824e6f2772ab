"""Local attention: each query attends to the keys at most w tokens away."""

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.pattern.primitives import mask_and_primitives
from attention_core.ops.pattern.window import (
    is_in_square,
    is_in_window,
    square_attention,
    square_cost,
    window_attention,
    window_cost,
)
from attention_core.ops.softmax.masked import distances, masked_softmax, pixel_offsets, positions, scores
from attention_core.variant import TOKENS, Cost, Params, SpecialCase, Variant, param


class LocalParams(Params):
    """Settings of local attention."""

    window: int = param(
        16,
        low=1,
        high=4096,
        scale="log",
        help="Number w of tokens that a query can attend to on each side of its own position. A window as long as "
        "the text gives softmax attention.",
        budget=True,
    )
    columns: int = param(
        0,
        low=0,
        high=1024,
        help="Number of columns of an image whose pixels are the tokens, row by row. The window is then a square of "
        "pixels. At 0, the tokens form a single line, as in a text.",
    )


def rule_masks(n: int, p: LocalParams, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of pairs in the window, by the rule's name, ``bool [n, n]``."""
    if p.columns:
        return {"window": is_in_square(*positions(n, device), p.window, p.columns, causal=causal)}
    return {"window": is_in_window(distances(n, device), p.window, causal=causal)}


mask, primitives = mask_and_primitives(rule_masks)


def weights(q: Tensor, k: Tensor, p: LocalParams, *, causal: bool) -> Tensor:
    """Compute softmax over the tokens at most ``window`` away (in an image: on both axes), ``[..., n, n]``."""
    rows, columns = pixel_offsets(q.shape[-2], p.columns, q.device)
    allowed = (rows.abs() <= p.window) & (columns.abs() <= p.window)
    return masked_softmax(scores(q, k), allowed.tril() if causal else allowed)


def attend(q: Tensor, k: Tensor, v: Tensor, p: LocalParams, *, causal: bool) -> Tensor:
    """Attend in blocks of queries to the keys around them, with the fused kernel: O(n w d) time, O(n d) memory."""
    if p.columns:
        return square_attention(q, k, v, p.window, p.columns, causal=causal)
    return window_attention(q, k, v, p.window, causal=causal)


def cost(n: int, d: int, p: LocalParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v, by blocks of queries; memory for the output and one step."""
    if p.columns:
        return Cost(*square_cost(n, d, p.window, p.columns, causal=causal))
    return Cost(*window_cost(n, d, p.window, causal=causal))


VARIANT = Variant(
    __name__,
    title="Local",
    summary="Each query attends only to keys at most w tokens before or after its own position.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{|i-l| \le w} e^{q_i^\top k_l / \sqrt d}}"
    r"\quad\text{where } |i-j| \le w",
    complexity="n w d",
    params=LocalParams,
    pairs="n (2 w + 1)",
    approximates="softmax",
    source=articles.STANDARD_TO_SPARSE,
    special_cases=(SpecialCase("softmax", {"window": TOKENS}),),
)
