"""Lower bounds of the variants' times: their bare arithmetic in torch calls, timed in the same rounds as the variants.

A bound leaves out all work that a better implementation of the variant could save: masks, special cases at the ends of
the text, row sums and concatenation. Features are computed in advance, unless computing them is the work. Results
overwrite each other in memory that fits a cache, so the computed numbers serve only for timing.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.monomials import feature_count

Call = Callable[[], Any]
Settings = Mapping[str, Any]
Build = Callable[[Tensor, Tensor, Tensor, Settings], Call]
"""A function ``(q, k, v, settings) -> call`` for q, k, v ``[1, H, n, d]``; ``call()`` runs the bound's arithmetic."""

CACHED = 2**18
"""Numbers processed per step: a megabyte of float32."""
BLOCK = 256
"""Tokens whose features are multiplied per step: matrix products reach full speed at this size."""
GROUP = 8
"""Logits per group, of which only the largest is sorted."""


def tanh_pairs(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Call:
    """Apply one cheap function to all n² d pairs of entries and contract with a vector: n² d multiply-adds per head.

    ``tanh(x + y) = 1 - 2 / (1 + e^2x e^2y)``: the exponentials are of n d numbers. Each pair then needs a
    multiplication, a reciprocal and the contraction. Torch has no cheaper function than a reciprocal; its sigmoid
    takes three times and its tanh twenty times as long.
    """
    n, d = q.shape[-2:]
    vector, one, size = q.new_ones(d, 1), q.new_ones(()), max(1, CACHED // (n * d))
    rows, keys = (x.flatten(0, 1).mul(2).exp() for x in (q, k))
    buffer = q.new_empty(size, n, d)

    def call() -> None:
        for queries, others in zip(rows, keys, strict=True):
            for block in queries.split(size):
                torch.addcmul(one, block.unsqueeze(1), others, out=buffer[: len(block)]).reciprocal_().matmul(vector)

    return call


def best_of_all(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Call:
    """Compute all logits, select the k best groups by maximum, and sum k values: n² d + n k d multiply-adds per head.

    Every logit must be computed and compared; at least an eighth of them is then sorted, and k values are summed.
    """
    n, selected = q.shape[-2], p["k"]
    size = max(1, CACHED // n)
    buffer = q.new_empty(size, n)
    queries, keys, values = (x.flatten(0, 1) for x in (q, k, v))

    def call() -> None:
        for rows, columns, table in zip(queries, keys, values, strict=True):
            for block in rows.split(size):
                logits = torch.mm(block, columns.mT, out=buffer[: len(block)])
                best = logits.unflatten(-1, (GROUP, n // GROUP)).amax(-2).topk(min(selected, n // GROUP), sorted=False)
                F.embedding_bag(best.indices, table, per_sample_weights=best.values, mode="sum")

    return call


def two_products(q: Tensor, k: Tensor, v: Tensor, p: Settings, *, features: Callable[[int], int]) -> Call:
    """Multiply features of keys by values, and features of queries by the result: 2 n C d multiply-adds per head.

    The features are assumed to exist: one block of them is used for all tokens, so that it stays in the cache at no
    cost. The sums that normalise the rows are left out.
    """
    n, d = q.shape[-2:]
    feature_block, values = q.new_ones(features(d), min(n, BLOCK)), q.new_ones(min(n, BLOCK), d)
    state = q.new_empty(features(d), d)
    times = q[..., 0, 0].numel() * (n // len(values))

    def call() -> None:
        for _ in range(times):
            torch.mm(feature_block, values, out=state)
            feature_block.mT.mm(state)

    return call


def random_features(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Call:
    """Compute random projections, their exponentials and the two products: 4 n m d multiply-adds per head."""
    d, m = q.shape[-1], p["features"]
    directions, buffer = q.new_full((d, m), d**-1.0), q.new_empty(BLOCK, m)
    state = q.new_empty(m, d)
    queries, keys, values = (x.flatten(0, 1) for x in (q, k, v))

    def call() -> None:
        for rows, columns, table in zip(queries, keys, values, strict=True):
            for block, value_block in zip(columns.split(BLOCK), table.split(BLOCK), strict=True):
                torch.mm(torch.mm(block, directions, out=buffer[: len(block)]).exp_().mT, value_block, out=state)
            for block in rows.split(BLOCK):
                torch.mm(block, directions, out=buffer[: len(block)]).exp_().mm(state)

    return call


def windows(q: Tensor, k: Tensor, v: Tensor, p: Settings, *, after: bool = True, block: int = 32) -> Call:
    """Apply the fused kernel to blocks of b queries and their r keys, without a mask: 2 d b r multiply-adds each.

    r is b + w, or b + 2 w if the window also has keys ``after`` the query. Only blocks whose window lies within the
    text are included: the blocks at the ends are cheaper.
    """
    n, w = q.shape[-2], p["window"]
    reach = min(n, block + w * (1 + after))
    count = (n - reach) // block + 1
    queries = q[0, :, : count * block].unflatten(-2, (count, block))
    keys, values = (x[0].unfold(-2, reach, block).mT for x in (k, v))
    return lambda: F.scaled_dot_product_attention(queries, keys, values)


def decayed_chunks(q: Tensor, k: Tensor, v: Tensor, p: Settings, *, chunk: int = 64, ways: int = 2) -> Call:
    """Attend within chunks of c tokens, and pass a state from chunk to chunk in one or both directions (``ways``).

    Per head, this takes 2 n c d + 2 (n - c) d² · ``ways`` multiply-adds: the first chunk reads no state, and the last
    one makes none.
    """
    chunks = [x[0].unflatten(-2, (-1, chunk)) for x in (q, k, v)]
    queries, keys, values = (x.flatten(0, 1) for x in chunks)
    later_queries, earlier_keys, earlier_values = (
        x.flatten(0, 1) for x in (chunks[0][:, 1:], chunks[1][:, :-1], chunks[2][:, :-1])
    )

    def call() -> None:
        queries.bmm(keys.mT).bmm(values)
        for _ in range(ways):
            later_queries.bmm(earlier_keys.mT.bmm(earlier_values))

    return call


BOUNDS: dict[str, Build] = {
    "pairs, reciprocals and their contraction": tanh_pairs,
    "logits, best of an eighth, k values": best_of_all,
    "two products of d²/2 features": partial(two_products, features=feature_count),
    "two products of d features": partial(two_products, features=lambda d: d),
    "two products of 2 d features": partial(two_products, features=lambda d: 2 * d),
    "projections, exponentials, two products": random_features,
    "bare windows": windows,
    "bare windows before": partial(windows, after=False),
    "bare chunks": partial(decayed_chunks, ways=1),
    "bare chunks, forth and back": decayed_chunks,
}
"""The bounds by the name that a case gives."""
