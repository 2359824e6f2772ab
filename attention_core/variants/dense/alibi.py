"""ALiBi: softmax with logits that decrease with distance, in place of position embeddings."""

from functools import partial

import torch
from torch import Tensor

from attention_core.ops.softmax.blockwise import RowBlock, blockwise_attention, largest_block, n_pairs
from attention_core.ops.softmax.masked import distances, masked_softmax, scores, visible_pairs
from attention_core.variant import Cost, Paper, Params, Variant, param


class AlibiParams(Params):
    """Settings of ALiBi."""

    slope: float = param(
        0.25,
        low=0.001,
        high=2.0,
        step=0.001,
        scale="log",
        help="Slope m: the amount subtracted from a logit for each token of distance between query and key.",
    )


def weights(q: Tensor, k: Tensor, p: AlibiParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q kᵀ / √d - m |i - j|)``, ``[..., n, n]``, with the slope m of the head."""
    logits = scores(q, k) - p.slope * distances(q.shape[-2], q.device).abs().to(q)
    return masked_softmax(logits, visible_pairs(q, causal=causal))


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock, p: AlibiParams) -> Tensor:
    i = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
    distance = (i - torch.arange(rows.key_count, device=q.device)).abs().to(q)
    return rows.softmax(scores(q, k) - p.slope * distance)


def attend(q: Tensor, k: Tensor, v: Tensor, p: AlibiParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    return blockwise_attention(partial(_row_weights, p=p), q, k, v, causal=causal)


def cost(n: int, d: int, p: AlibiParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v, by blocks of queries; memory for output, a block and its distances."""
    return Cost(multiply_adds=2 * d * n_pairs(n, causal=causal), peak_elements=n * d + 4 * largest_block(n))


VARIANT = Variant(
    __name__,
    title="ALiBi",
    summary="A penalty proportional to the distance between query and key is subtracted from each softmax logit, so "
    "distant keys get less weight.",
    formula=r"A = \operatorname{softmax}_j\left(\frac{q_i \cdot k_j}{\sqrt{d}} - m\,|i - j|\right)",
    complexity="n² d",
    params=AlibiParams,
    cross_reason="the penalty depends on the distance between query and key, which is defined only within one "
    "sequence.",
    source=Paper(
        "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation",
        2021,
        "https://arxiv.org/abs/2108.12409",
    ),
    note="The slope is the penalty that each token of distance subtracts from a logit. In the paper, head h of H "
    "heads has the slope 2^(-8h/H). Here, all heads have the same slope.",
)
