"""Selective attention: each token can lower the weights of keys for later tokens, by its logits in the first head.

For each query and key, the key's positive logits in the first head are summed over all earlier queries that attend to
the key. In all heads, this sum is subtracted from the key's logit. No token lowers the weights of the first key of the
text or of the token's own key.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.linear.scans import scan_chunks
from attention_core.ops.softmax.blockwise import block_size, largest_block, n_pairs
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, positions, scores
from attention_core.variant import Cost, Paper, Params, Variant


def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute ``softmax(s - F)``, ``[..., n, n]``, of logits s; F is the sum that earlier queries subtract from s.

    ``F_ij = Σ_{l < i, l ≠ j} relu(s⁰_lj)`` with the logits s⁰ of the first head. F is 0 for the first key.
    If causal, only the queries l after key j count.
    """
    logits, (i, j) = scores(q, k), positions(q.shape[-2], q.device)
    first_head = logits[..., :1, :, :] if q.ndim > 2 else logits  # its positive logits are subtracted in all heads
    subtracted = first_head.relu() * ((j > 0) & ((j < i) if causal else (j != i)))
    subtracted_before = subtracted.cumsum(-2) - subtracted  # F, the sum over earlier queries
    return masked_softmax(logits - subtracted_before, j <= i if causal else None)


State = tuple[int, Tensor, Tensor, Tensor]
"""The number of earlier queries, the sum F for the next query, ``[..., 1, 1, n]``, all keys, and all values."""


def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries, carrying the sum F from block to block: O(n² d) time, O(n d) memory."""
    queries, n = at_least_float32(q), q.shape[-2]
    subtracted_so_far = queries.new_zeros(*q.shape[:-3], 1, 1, n) if q.ndim > 2 else queries.new_zeros(1, n)
    state: State = (0, subtracted_so_far, at_least_float32(k), at_least_float32(v))
    size = step_size(block_size(n), q.device, numbers=math.prod(q.shape[:-2]) * n)
    out, _ = scan_chunks(partial(_attend_block, causal=causal), state, queries, size=size)
    return out.to(v.dtype)


def _attend_block(state: State, q: Tensor, causal: bool) -> tuple[Tensor, State]:
    start, subtracted_so_far, k, v = state
    stop, n = start + q.shape[-2], k.shape[-2]
    key_count = stop if causal else n
    logits = scores(q, k[..., :key_count, :])
    i, j = torch.arange(start, stop, device=q.device)[:, None], torch.arange(key_count, device=q.device)
    subtracted = logits[..., :1, :, :].relu() if q.ndim > 2 else logits.relu()  # first head's logits, used in all heads
    subtracted = subtracted * ((j > 0) & ((j < i) if causal else (j != i)))
    logits = logits - (subtracted_so_far[..., :key_count] + subtracted.cumsum(-2) - subtracted)
    subtracted_so_far = subtracted_so_far + F.pad(subtracted.sum(-2, keepdim=True), (0, n - key_count))
    return masked_softmax(logits, j <= i if causal else None) @ v[..., :key_count, :], (stop, subtracted_so_far, k, v)


def cost(n: int, d: int, p: Params, *, causal: bool, heads: int) -> Cost:
    """Return the cost: products with k and v, by blocks of queries; memory for the output and 4 blocks of weights."""
    return Cost(
        multiply_adds=heads * 2 * d * n_pairs(n, causal=causal), peak_elements=heads * (n * d + 4 * largest_block(n))
    )


VARIANT = Variant(
    __name__,
    title="Selective",
    summary="Each token can hide keys from later tokens. Its positive logits in the first head are subtracted from "
    "later tokens' logits for the same keys, in all heads.",
    formula=r"A = \operatorname{softmax}(S - F),\quad F_{ij} = [j > 1] \sum_{l < i,\; l \ne j} "
    r"\operatorname{relu}\left(S^{(0)}_{lj}\right),\quad S = \frac{Q K^\top}{\sqrt d}",
    complexity="n² d",
    params=Params,
    cross_reason="earlier queries hide keys from later queries, so queries and keys must come from one sequence.",
    couples_heads=True,
    source=Paper("Selective Attention Improves Transformer", 2024, "https://arxiv.org/abs/2410.02703"),
    note="The first head determines which keys each token hides from later tokens. A token never hides its own key "
    "or the first key of the text. In a model trained with selective attention, the first head has learned which "
    "keys to hide. In any other model, the first head is an ordinary head. Even without a causal mask, only "
    "earlier tokens can hide keys from a query.",
)
