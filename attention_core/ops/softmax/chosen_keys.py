"""Softmax attention of each query to its own c keys, which are given by their positions, without an n x n matrix.

It takes O(n c d) time. The result is a ``Part`` (output and log-sum-exp), which can be merged with attention to other
keys.
"""

import math

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.softmax.partial import Part, join_parts

PAIRS_PER_STEP = 2**13
"""Pairs of query and key per step, for each head."""


def queries_per_step(n: int, c: int) -> int:
    """Return the number of queries per step, for n queries with c keys each."""
    return min(n, max(1, PAIRS_PER_STEP // c))


def selected_keys_attention(q: Tensor, k: Tensor, v: Tensor, index: Tensor, allowed: Tensor) -> Part:
    """Return the attention of each query to its own set of keys.

    Args:
        q: ``[..., n, d]``, float32 or float64.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        index: positions of the keys, ``int64 [..., n, c]``, c >= 1.
        allowed: which of these keys are allowed, ``bool [..., n, c]``.

    Returns:
        The output ``[..., n, d_v]`` and the log-sum-exp ``[..., n, 1]``, which is the lowest finite number if a
        query has no allowed key.
    """
    n, numbers = q.shape[-2], index.shape[-1] * math.prod(q.shape[:-2]) * q.shape[-1]
    rows = step_size(queries_per_step(n, index.shape[-1]), q.device, numbers=numbers)
    keys, values = (x.reshape(-1, x.shape[-1]) for x in (k, v))
    head_offset = torch.arange(len(keys) // n, device=q.device).reshape(*q.shape[:-2], 1, 1) * n

    def parts(start: int) -> Part:
        rows_slice = slice(start, start + rows)
        key_index, allowed_rows = index[..., rows_slice, :] + head_offset, allowed[..., rows_slice, :]
        logits = (keys[key_index] @ q[..., rows_slice, :].unsqueeze(-1)).squeeze(-1) * q.shape[-1] ** -0.5
        logits = logits.masked_fill(~allowed_rows, torch.finfo(q.dtype).min)
        weights = logits.softmax(-1).unsqueeze(-2)
        return (weights @ values[key_index]).squeeze(-2), logits.logsumexp(-1, keepdim=True)

    return join_parts((parts(start) for start in range(0, n, rows)), lambda outs: torch.cat(outs, -2))
