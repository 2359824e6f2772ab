"""Selective attention: each token can mask keys for all later tokens, by the positive logits of the first head.

The first head masks for all heads. Its positive logits for a key are summed over the earlier queries, and the sum is
subtracted from the key's logits at later queries. The first key of the text and a query's own key are exempt.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.scans import by_chunks
from attention_core.ops.softmax.blockwise import block_size, largest_block, pairs
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, positions, scores
from attention_core.variant import Cost, Paper, Params, Variant


def subtractions(logits: Tensor, i: Tensor, *, causal: bool) -> Tensor:
    """Return how much queries i, ``[rows, 1]``, subtract from later logits of keys, ``[..., 1, rows, keys]``."""
    j = torch.arange(logits.shape[-1], device=logits.device)
    first = logits[..., :1, :, :] if logits.ndim > 2 else logits
    taken = (j > 0) & ((j < i) if causal else (j != i))
    return first.relu() * taken


def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute ``softmax(s - F)``, ``[..., n, n]``, where F sums what earlier queries subtracted.

    ``F_ij = Σ_{l < i, l ≠ j} relu(s⁰_lj)``, and 0 for the first key.
    """
    logits, (i, j) = scores(q, k), positions(q.shape[-2], q.device)
    first = logits[..., :1, :, :] if q.ndim > 2 else logits  # the first head's logits mask keys for all heads
    taken = first.relu() * ((j > 0) & ((j < i) if causal else (j != i)))
    taken_before = taken.cumsum(-2) - taken  # F, the sum over earlier queries
    return masked_softmax(logits - taken_before, j <= i if causal else None)


State = tuple[int, Tensor, Tensor, Tensor]
"""The number of earlier queries, what they subtract from every key, ``[..., 1, 1, n]``, all keys, and all values."""


def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries, carrying the sum F from block to block: O(n² d) time, O(n d) memory."""
    queries, n = at_least_float32(q), q.shape[-2]
    lost = queries.new_zeros(*q.shape[:-3], 1, 1, n) if q.ndim > 2 else queries.new_zeros(1, n)
    state: State = (0, lost, at_least_float32(k), at_least_float32(v))
    out, _ = by_chunks(partial(_rows, causal=causal), state, queries, size=block_size(n))
    return out.to(v.dtype)


def _rows(state: State, q: Tensor, causal: bool) -> tuple[Tensor, State]:
    """Return the outputs of a block of queries and the next state."""
    start, lost, k, v = state
    stop, n = start + q.shape[-2], k.shape[-2]
    keys = stop if causal else n
    logits = scores(q, k[..., :keys, :])
    i = torch.arange(start, stop, device=q.device)[:, None]
    taken = subtractions(logits, i, causal=causal)
    logits = logits - (lost[..., :keys] + taken.cumsum(-2) - taken)
    seen = torch.arange(keys, device=q.device) <= i if causal else None
    lost = lost + F.pad(taken.sum(-2, keepdim=True), (0, n - keys))
    return masked_softmax(logits, seen) @ v[..., :keys, :], (stop, lost, k, v)


def cost(n: int, d: int, p: Params, *, causal: bool, heads: int) -> Cost:
    """Return the cost: two products over the pairs in blocks, memory for the output and four arrays of block size."""
    return Cost(
        multiply_adds=heads * 2 * d * pairs(n, causal=causal), peak_elements=heads * (n * d + 4 * largest_block(n))
    )


VARIANT = Variant(
    __name__,
    title="Selective",
    summary="Each token can hide keys from all later tokens: in every head, its positive logits in the first head "
    "are subtracted from later tokens' logits for these keys.",
    formula=r"A = \operatorname{softmax}(S - F),\quad F_{ij} = [j > 1] \sum_{l < i,\; l \ne j} "
    r"\operatorname{relu}\left(S^{(0)}_{lj}\right),\quad S = \frac{Q K^\top}{\sqrt d}",
    complexity="n² d",
    params=Params,
    cross_reason="earlier queries hide keys from later queries, so queries and keys must come from one sequence.",
    couples_heads=True,
    source=Paper("Selective Attention Improves Transformer", 2024, "https://arxiv.org/abs/2410.02703"),
    note="A token never hides its own key or the first key of the text. In a model trained with selective attention, "
    "the first head has learned which keys to hide. In any other model, the first head is an ordinary head. Even "
    "without a causal mask, only tokens before a query can hide keys from it.",
)
