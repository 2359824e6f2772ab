"""The share of softmax's weight that a head puts on later tokens if no causal mask hides them."""

import torch

from attention_core import registry
from attention_core.inputs.record import QKV
from attention_core.ops.softmax.masked import causal_mask


def future_share(qkv: QKV, *, head: int | None) -> float:
    """Compute softmax's mass on keys after the query without a causal mask, averaged over rows, from 0 to 1.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        head: index of the head; None for the mean over all heads.
    """
    selected = qkv.of_head(head)
    is_later = ~causal_mask(selected.n)
    # One head at a time, so that only one n x n matrix is in memory.
    shares = [
        registry.get("softmax").weights(q, k).double().masked_fill(~is_later, 0.0).sum(-1).mean()
        for q, k in zip(selected.q, selected.k, strict=True)
    ]
    return float(torch.stack(shares).mean())
