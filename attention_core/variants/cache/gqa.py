"""Grouped-query attention: neighbouring heads share keys and values, here the mean over the heads of a group.

A model trained with grouped queries learns one key and one value for each group. Other models are converted by
averaging the keys and values of a group. The paper then continues training, which is not done here. With a single group
for all heads, this is multi-query attention.
"""

import torch
from torch import Tensor

from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, scores, visible_pairs
from attention_core.variant import Cache, Cost, Paper, Params, SpecialCase, Variant, param


class GqaParams(Params):
    """Settings of grouped-query attention."""

    groups: int = param(
        2,
        low=1,
        high=64,
        scale="log",
        budget=True,
        help="Number of groups into which the heads are divided. With one group, all heads share keys and values "
        "(multi-query attention). With at least as many groups as heads, nothing is shared (standard multi-head "
        "attention).",
    )


def group_means(x: Tensor, p: GqaParams) -> Tensor:
    """Replace each head's keys or values by the mean over its group of heads (axis -3), ``[..., H, n, d]``."""
    if x.ndim == 2 or p.groups >= x.shape[-3]:
        return x
    groups = x.tensor_split(p.groups, -3)
    return torch.cat([group.mean(-3, keepdim=True).expand_as(group) for group in groups], -3)


def weights(q: Tensor, k: Tensor, p: GqaParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q_h k_g(h)ᵀ / √d)``, ``[..., n, n]``, where g(h) is the group of head h."""
    return masked_softmax(scores(q, group_means(k, p)), visible_pairs(q, causal=causal))


def values(v: Tensor, p: GqaParams) -> Tensor:
    """Return each head's values, the mean over its group, ``[..., n, d_v]``."""
    return group_means(at_least_float32(v), p).to(v.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: GqaParams, *, causal: bool) -> Tensor:
    """Compute the output with the fused kernel: O(n² d) time, O(n d) memory."""
    return exact_attention(
        at_least_float32(q), group_means(at_least_float32(k), p), group_means(at_least_float32(v), p), causal=causal
    ).to(v.dtype)


def cost(n: int, d: int, p: GqaParams, *, causal: bool, heads: int, keys: int | None = None) -> Cost:
    """Return the cost: softmax's multiply-adds, and memory that includes the pooled keys and values, if any."""
    adds = 2 * d * n_pairs(n, causal=causal, keys=keys)
    m = keys or n
    shared_elements = 2 * m * d if p.groups < heads else 0
    # First the keys and then the values of each group are repeated for all of its heads. Meanwhile, the repeated keys
    # and values and the groups' own values are in memory, but no output.
    expand_elements = heads * shared_elements + p.groups * m * d if shared_elements else 0
    return Cost(multiply_adds=heads * adds, peak_elements=max(heads * (n * (d + 1) + shared_elements), expand_elements))


def cache(heads: int, d: int, d_v: int, p: GqaParams) -> Cache:
    """Return the numbers cached: a key and a value for each group."""
    return Cache(per_token=min(p.groups, heads) * (d + d_v))


VARIANT = Variant(
    __name__,
    title="Grouped queries",
    summary="Heads are divided into groups. All heads of a group share one set of keys and values, so fewer keys and "
    "values are cached than with one set per head.",
    formula=r"A^{(h)} = \operatorname{softmax}\left(\frac{Q^{(h)} \bar K^{(g(h))\top}}{\sqrt d}\right),\quad "
    r"\bar K^{(g)} = \frac{1}{|g|} \sum_{h \in g} K^{(h)},\quad O^{(h)} = A^{(h)} \bar V^{(g(h))}",
    complexity="n² d",
    params=GqaParams,
    approximates="softmax",
    couples_heads=True,
    source=Paper(
        "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
        2023,
        "https://arxiv.org/abs/2305.13245",
    ),
    further=(
        Paper("Fast Transformer Decoding: One Write-Head is All You Need", 2019, "https://arxiv.org/abs/1911.02150"),
    ),
    note="The keys and values that a group of heads shares are the means over these heads. Published models are "
    "trained further after this averaging. Here, only models that were trained on the Learn page have learned to "
    "share keys and values.",
    special_cases=(SpecialCase("softmax", {"groups": 64}),),
)
