"""Additive attention: the logit of a query and a key comes from a one-layer tanh network instead of a dot product."""

import math

import torch
from torch import Tensor

from attention_core.ops.linear.scans import map_heads, needs_gradient
from attention_core.ops.random import normal
from attention_core.ops.softmax.blockwise import STEP, RowBlock, blockwise_attention, largest_block, n_pairs
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, visible_pairs
from attention_core.variant import Cost, Paper, Params, Trainable, Variant, param


class AdditiveParams(Params):
    """Settings of additive attention."""

    seed: int = param(
        0, low=0, high=9999, help="Random seed of w, the weight vector of the network that computes the logits."
    )


def _weight_vector(q: Tensor, p: AdditiveParams) -> Tensor:
    """Draw w, ``[d, 1]``, with variance 1/d; all batches and heads share it."""
    d = q.shape[-1]
    return normal((d, 1), p.seed, q) * d**-0.5 + p.learned.get("w", 0.0)


def _logits(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    """Compute ``wᵀ tanh(q_i + k_j)`` up to a constant that softmax cancels, ``[..., rows, keys]``."""
    # tanh(x) = 2 sigmoid(2x) - 1, and torch's sigmoid takes a seventh of the time of its tanh. Softmax cancels
    # the -1, which adds the same number to all logits.
    doubled = torch.add((2 * q).unsqueeze(-2), k.unsqueeze(-3), alpha=2)  # [..., rows, keys, d]
    return (doubled.sigmoid_() @ (2 * w)).squeeze(-1)


def weights(q: Tensor, k: Tensor, p: AdditiveParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(wᵀ tanh(q_i + k_j))``, ``[..., n, n]``, row by row: n² d numbers would not fit in memory."""
    w = _weight_vector(q, p)  # [d, 1]
    logits = w.new_empty(*q.shape[:-1], k.shape[-2])  # [..., n, n]
    for i, row in enumerate(q.split(1, -2)):
        # Each row is written into place, since collecting the rows for torch.cat would fragment the heap.
        logits[..., i : i + 1, :] = _logits(row, k, w)
    return masked_softmax(logits, visible_pairs(q, causal=causal))


def definition(q: Tensor, k: Tensor, v: Tensor, p: AdditiveParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(wᵀ tanh(q_i + k_j)) v``, ``[..., n, d_v]``, with n² d numbers in memory."""
    hidden = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3))  # [..., n, n, d]
    logits = (hidden @ _weight_vector(q, p)).squeeze(-1)  # [..., n, n]
    return masked_softmax(logits, visible_pairs(q, causal=causal)) @ v


def attend(q: Tensor, k: Tensor, v: Tensor, p: AdditiveParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, with n² d sigmoids or reciprocals, and O(n d) memory."""
    if p.learned:  # w is trained, but blockwise attention computes gradients of q, k and v only
        return weights(q, k, p, causal=causal) @ v
    w = _weight_vector(at_least_float32(q), p)

    def row_weights(q: Tensor, k: Tensor, rows: RowBlock) -> Tensor:
        return rows.softmax(_logits(q, k, w))

    def row_weights_from_exponentials(q: Tensor, exponentials: Tensor, rows: RowBlock) -> Tensor:
        return rows.softmax(_logits_from_exponentials(q, exponentials, w))

    def attend_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        exponentials, per_pair = (-2 * k).exp_(), numbers_per_pair(q.shape[-1])
        return blockwise_attention(row_weights_from_exponentials, q, exponentials, v, causal=causal, per_pair=per_pair)

    if needs_gradient(q, k, v) or not _has_exponentials(q, k):
        return blockwise_attention(row_weights, q, k, v, causal=causal, per_pair=q.shape[-1])
    q, k, values = (at_least_float32(x) for x in (q, k, v))
    heads = max(1, STEP // math.prod(k.shape[-2:]))
    return map_heads(attend_heads, q, k, values, heads_per_call=heads).to(v.dtype)


def _has_exponentials(q: Tensor, k: Tensor) -> bool:
    """Return whether the entries of q and k are so small that ``e^(-2q)`` and ``e^(-2k)`` are normal numbers."""
    if q.is_meta:  # a meta tensor has no numbers; ``cost`` assumes ``_logits_from_exponentials``
        return True
    largest = math.log(torch.finfo(at_least_float32(q).dtype).max) / 2.2
    return bool(torch.maximum(q.abs().amax(), k.abs().amax()) <= largest)


def _logits_from_exponentials(q: Tensor, exponentials: Tensor, w: Tensor) -> Tensor:
    """Compute the same as ``_logits`` from ``exponentials = e^(-2k)``, ``[..., rows, keys]``.

    ``sigmoid(2(q + k)) = 1 / (1 + e^(-2q) e^(-2k))`` needs a reciprocal per pair, which takes a third of the time of a
    sigmoid. A product beyond the largest number becomes infinite, and its reciprocal zero, which is the limit.
    """
    products = torch.addcmul(q.new_ones(()), (-2 * q).exp_().unsqueeze(-2), exponentials.unsqueeze(-3))
    return (products.reciprocal_() @ (2 * w)).squeeze(-1)  # [..., rows, keys, d] times [d, 1]


def numbers_per_pair(d: int) -> int:
    """Return ``per_pair`` of ``blockwise_attention``: the numbers that a pair of query and key counts as.

    A pair needs d numbers but counts as d / 4, so blocks are four times larger. In small blocks, most of the time
    would be spent on function calls.
    """
    return max(1, d // 4)


def cost(n: int, d: int, p: AdditiveParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of the products with w and with v; the n² d reciprocals, slower than both, are not counted."""
    per_pair = numbers_per_pair(d)
    return Cost(
        multiply_adds=2 * d * n_pairs(n, causal=causal, per_pair=per_pair, keys=keys),
        peak_elements=n * d + (keys or n) * d + (d + 2) * largest_block(n, per_pair=per_pair, keys=keys),
    )


VARIANT = Variant(
    __name__,
    title="Additive",
    summary="The logit of a query and a key is not a dot product: a small network with a tanh layer computes it. "
    "Softmax turns the logits into weights.",
    formula=r"A_{ij} = \operatorname{softmax}_j\left(w^\top \tanh(q_i + k_j)\right),"
    r"\quad w \sim \mathcal{N}\left(0, \tfrac{1}{d} I\right)",
    complexity="n² d",
    params=AdditiveParams,
    trainable=(
        Trainable(name="w", title="vectors w of the tanh network", per="layer", shape=lambda p, tokens, d: (d, 1)),
    ),
    source=Paper(
        "Neural Machine Translation by Jointly Learning to Align and Translate", 2014, "https://arxiv.org/abs/1409.0473"
    ),
    random=True,
    note="The logit of a query q and a key k is w · tanh(q + k). In the paper, the vector w is trained. The Learn "
    "page can train it too; on other pages, it is random. The count of multiply-adds leaves out tanh, so additive "
    "attention is slower than this count suggests.",
)
