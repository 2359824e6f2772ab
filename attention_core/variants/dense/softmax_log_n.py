"""Softmax with logits multiplied by log n / log n₀, so that attention flattens more slowly as the text grows."""

import math

from torch import Tensor

from attention_core import articles
from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, key_counts, masked_softmax, scores, visible_pairs
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class SoftmaxLogNParams(Params):
    """Settings of the log n scale."""

    base_length: int = param(
        512,
        low=2,
        high=65_536,
        scale="log",
        help="Number of keys at which a row is the same as with softmax. Rows with fewer keys spread their weight "
        "more evenly than with softmax, and rows with more keys less evenly.",
    )


def _logit_scale(k: Tensor, p: SoftmaxLogNParams, *, causal: bool) -> Tensor:
    """Return ``log(max(n_i, 2)) / log(n₀)`` for queries with n_i visible keys, ``[n, 1]`` or ``[1, 1]``.

    n₀ is the setting ``base_length``.
    """
    return (key_counts(k, causal=causal).clamp_min(2.0).log() / math.log(p.base_length)).to(k)


def weights(q: Tensor, k: Tensor, p: SoftmaxLogNParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(log(n_i) / log(n₀) · q kᵀ / √d)``, ``[..., n, n]``; see ``_logit_scale``."""
    logits = _logit_scale(k, p, causal=causal) * scores(q, k)  # [..., n, n]
    return masked_softmax(logits, visible_pairs(q, causal=causal))


def attend(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxLogNParams, *, causal: bool) -> Tensor:
    """Compute the output with the fused kernel: O(n² d) time, O(n d) memory.

    The factor of ``_logit_scale`` multiplies the kernel's scale or, if causal, the queries.
    """
    if not causal:
        n, d = k.shape[-2:]
        return exact_attention(q, k, v, scale=math.log(max(n, 2)) / math.log(p.base_length) * d**-0.5)
    q, k = at_least_float32(q), at_least_float32(k)
    return exact_attention(q * _logit_scale(k, p, causal=True), k, at_least_float32(v), causal=True).to(v.dtype)


def cost(n: int, d: int, p: SoftmaxLogNParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products with k and v; memory for the output and, if causal, the scaled queries."""
    return Cost(
        multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys), peak_elements=n * ((2 if causal else 1) * d + 1)
    )


VARIANT = Variant(
    __name__,
    title="Softmax, log n scale",
    summary="Logits are multiplied by log n / log n₀, so that the effective number of keys grows more slowly with the "
    "number of keys n than in softmax.",
    formula=r"A = \operatorname{softmax}\left(\frac{\log n_i}{\log n_0}\,\frac{Q K^\top}{\sqrt{d}}\right),"
    r"\quad n_i = \text{number of keys query } i \text{ sees}",
    complexity="n² d",
    params=SoftmaxLogNParams,
    source=articles.ENTROPY_INVARIANCE,
    further=(Paper("Scalable-Softmax Is Superior for Attention", 2025, "https://arxiv.org/abs/2501.19399"),),
    note="The logits of a row are multiplied by log n / log n₀. Here, n is the number of keys that the query can "
    "attend to, and n₀ is the setting “base length”. If n equals n₀, the row is the same as with softmax. A "
    "related method, Scalable-Softmax, multiplies the logits by s log n and learns s. Here, s is 1 / log n₀.",
    special_cases=(SpecialCase("softmax", {"base_length": TOKENS}, causal=False),),
)
