"""Forgetting transformer: each token has a forget gate, which lowers the logits of later queries for earlier keys.

A gate γ lowers them by ``-log γ``. A constant gate gives ALiBi with the slope ``-log γ``, and a gate of 1 gives
softmax.
"""

import torch
from torch import Tensor

from attention_core.ops.delta.gates import TRAINED_GATE, GateParams, gate_setting, log_gates
from attention_core.ops.softmax.blockwise import ROWS, RowBlock, blockwise_attention, largest_block, n_pairs
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, scores, visible_pairs
from attention_core.variant import Cost, Paper, SpecialCase, Variant


class FoxParams(GateParams):
    """Settings of the forgetting transformer."""

    gate: str = gate_setting("keys")


def weights(q: Tensor, k: Tensor, p: FoxParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q kᵀ / √d - |g_i - g_j|)``, ``[..., n, n]``, where g is the running sum of log gates."""
    g = log_gates(k.double(), p).cumsum(-2)
    penalty = (g - g.mT).abs().to(q.dtype)
    return masked_softmax(scores(q, k) - penalty, visible_pairs(q, causal=causal))


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock) -> Tensor:
    """Compute the weights of one block of queries, ``[..., rows.size, rows.key_count]``.

    The last two entries of each key are two numbers whose sum is g, the running sum of log gates.
    """
    sums = k[..., -2:]
    query_sums = sums[..., rows.start : rows.stop, :]
    penalty = (query_sums[..., :1] - sums[..., :1].mT) + (query_sums[..., 1:] - sums[..., 1:].mT)
    return rows.softmax(scores(q, k[..., :-2]) - penalty.abs())


def attend(q: Tensor, k: Tensor, v: Tensor, p: FoxParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    # The gates are computed by chunks, because float64 copies of all keys would need much memory.
    chunks = enumerate(k.split(ROWS, -2))
    log_alpha = torch.cat([log_gates(x.double(), p, first=ROWS * i) for i, x in chunks], -2)
    gate_sums = log_alpha.cumsum(-2).expand(*k.shape[:-1], 1)
    # The sum of log gates is stored as two numbers, a large and a small one. In a long text, a single float32 number
    # would round away the gate of one token.
    large = gate_sums.to(at_least_float32(k).dtype)
    small = (gate_sums - large).to(large.dtype)
    return blockwise_attention(_row_weights, q, torch.cat([at_least_float32(k), large, small], -1), v, causal=causal)


def cost(n: int, d: int, p: FoxParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v.

    Memory for keys, sums of log gates, the output and 4 blocks of weights.
    """
    return Cost(multiply_adds=2 * d * n_pairs(n, causal=causal), peak_elements=n * (2 * d + 8) + 4 * largest_block(n))


VARIANT = Variant(
    __name__,
    title="Forgetting",
    summary="Each token has a gate from 0 to 1. A softmax weight is multiplied by the gates of all tokens between "
    "query and key, including the later of the two. Then each row is divided by its sum.",
    formula=r"A = \operatorname{softmax}_j\left(\frac{q_i \cdot k_j}{\sqrt{d}} - |g_i - g_j|\right),\quad "
    r"g_i = \sum_{l \le i} \log \alpha_l",
    complexity="n² d",
    params=FoxParams,
    cross_reason="the gates of the tokens between key and query reduce the logit, so queries and keys must come from "
    "one sequence.",
    trainable=(TRAINED_GATE,),
    source=Paper(
        "Forgetting Transformer: Softmax Attention with a Forget Gate", 2025, "https://arxiv.org/abs/2503.02130"
    ),
    note="Each token has a gate α between 0 and 1. The logit of a query and a key is reduced by −log α for every "
    "token between them, including the later of the two. In the paper, gates are learned. The Learn page can "
    "train them; on other pages, they follow a fixed rule. By default, the gate of a token is the geometric mean "
    "of σ(k)^(1/root) over the components of its key k. Here σ is the sigmoid, and root is a setting. If all "
    "gates are equal, the reduction is proportional to the distance between key and query, as in ALiBi.",
    special_cases=(SpecialCase("softmax", {"gate": "constant", "decay": 1.0}),),
)
