"""What does a causal model's head not see? The share of its full softmax that lies in the future."""

import torch

from attention_core import registry
from attention_core.inputs.record import QKV
from attention_core.ops.softmax.masked import causal_mask


def future_share(qkv: QKV, *, head: int | None) -> float:
    """Mean over rows of softmax's mass on keys after the query, where nothing is hidden, from 0 to 1.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        head: the head looked at; None for the mean over all of them.
    """
    one = qkv.of_head(head)
    later = ~causal_mask(one.n)
    # One head at a time: a square for each of many heads would be held at once.
    shares = [
        registry.get("softmax").weights(q, k).double().masked_fill(~later, 0.0).sum(-1).mean()
        for q, k in zip(one.q, one.k, strict=True)
    ]
    return float(torch.stack(shares).mean())
