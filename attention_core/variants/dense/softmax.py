"""Full attention: each query attends to every key by the softmax of their scaled dot products."""

import math

from torch import Tensor

from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import causal_mask, scores
from attention_core.variant import Cost, Paper, Params, Variant, param


class SoftmaxParams(Params):
    """Settings of full attention."""

    temperature: float = param(
        1.0,
        low=0.05,
        high=20.0,
        step=0.05,
        scale="log",
        help="Number by which the logits are divided. Below 1, each row concentrates on fewer keys than at 1. Above 1, "
        "the weights are more equal.",
    )


def weights(q: Tensor, k: Tensor, p: SoftmaxParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q kᵀ / (√d T))``, ``[..., n, n]``, with the temperature T."""
    # The logits are changed in place to save memory, since a page computes all heads of a model together.
    logits = scores(q, k)  # [..., n, n]
    if p.temperature != 1:
        logits /= p.temperature
    if causal:
        logits.masked_fill_(~causal_mask(q.shape[-2], q.device), -math.inf)
    return logits.softmax(-1)


def attend(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxParams, *, causal: bool) -> Tensor:
    """Compute the output with the fused kernel: O(n² d) time, O(n d) memory."""
    return exact_attention(q, k, v, causal=causal, scale=q.shape[-1] ** -0.5 / p.temperature)


def cost(n: int, d: int, p: SoftmaxParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products of all queries with k, and of all weights with v."""
    return Cost(multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys), peak_elements=n * (d + 1))


VARIANT = Variant(
    __name__,
    title="Softmax",
    summary="Each query attends to every key, with weights from the softmax of its dot products with the keys, "
    "divided by √d and the temperature T.",
    formula=r"A = \operatorname{softmax}\left(\frac{Q K^\top}{T \sqrt{d}}\right)",
    complexity="n² d",
    params=SoftmaxParams,
    source=Paper("Attention Is All You Need", 2017, "https://arxiv.org/abs/1706.03762"),
)
