"""Softmax with one additional logit that belongs to no key, so that the weights of a row may sum to less than one.

A logit of 0 adds one to the denominator ("softmax off by one"). Trained models learn one extra logit s for each head;
it takes the weight that models otherwise give to the first token. The result equals softmax attention with each output
multiplied by the gate ``σ(log Σ_l e^{S_l} - s)``, where S_l are the logits of the query.
"""

import torch
from torch import Tensor

from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.masked import masked_softmax, scores, visible_pairs
from attention_core.ops.softmax.partial import partial_attention
from attention_core.variant import Cost, Paper, Params, Trainable, Variant, param


class SinkLogitParams(Params):
    """Settings of the sink logit."""

    logit: float = param(
        0.0,
        low=-20.0,
        high=20.0,
        step=0.5,
        help="The extra logit in the softmax of each row. The higher it is, the less weight the keys receive. At "
        "-20, the result is usually almost equal to softmax.",
    )


def sink_logit(p: SinkLogitParams, like: Tensor) -> Tensor:
    """Return the extra logit, ``[1, 1]``, or one trained logit per head, ``[H, 1, 1]``, in the type of ``like``."""
    return p.learned.get("logit", 0.0) + like.new_full((1, 1), p.logit)


def weights(q: Tensor, k: Tensor, p: SinkLogitParams, *, causal: bool) -> Tensor:
    """Return softmax over the n logits and the extra logit, without the weight of the extra logit, ``[..., n, n]``."""
    logits, allowed = scores(q, k), visible_pairs(q, causal=causal)  # [..., n, n]
    logits = torch.cat([logits, sink_logit(p, q).expand(*logits.shape[:-1], 1)], -1)
    if allowed is not None:
        allowed = torch.cat([allowed, allowed.new_ones(len(allowed), 1)], -1)
    return masked_softmax(logits, allowed)[..., :-1]


def attend(q: Tensor, k: Tensor, v: Tensor, p: SinkLogitParams, *, causal: bool) -> Tensor:
    """Multiply each output of softmax attention by ``σ(log-sum-exp - sink logit)``: O(n² d) time, O(n d) memory."""
    out, lse = partial_attention(*(x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v)), causal=causal)
    out, lse = (x.reshape(*q.shape[:-1], x.shape[-1]) for x in (out, lse))
    return (out * (lse - sink_logit(p, lse)).sigmoid()).to(v.dtype)


def cost(n: int, d: int, p: SinkLogitParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products of all queries with k, and of all weights with v."""
    return Cost(multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys), peak_elements=n * (2 * d + 2))


VARIANT = Variant(
    __name__,
    title="Sink logit",
    summary="One extra logit, which belongs to no key, takes part of each row's softmax weight, so the weights of "
    "the keys sum to less than one.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{e^{s} + \sum_l e^{q_i^\top k_l / \sqrt d}}",
    complexity="n² d",
    params=SinkLogitParams,
    trainable=(Trainable(name="logit", title="extra logits", per="head"),),
    approximates=None,
    rows_sum_to_one=False,
    source=Paper("gpt-oss-120b & gpt-oss-20b Model Card", 2025, "https://arxiv.org/abs/2508.10925"),
    further=(
        Paper("Attention Is Off By One", 2023, "https://www.evanmiller.org/attention-is-off-by-one.html"),
        Paper("Efficient Streaming Language Models with Attention Sinks", 2023, "https://arxiv.org/abs/2309.17453"),
    ),
    note="The extra logit is one more term in the softmax of a row, and no value is multiplied by its weight. In "
    "published models, each head learns its own extra logit. The Learn page can train it too; on other pages, it is a "
    "setting, the same for all heads.",
)
