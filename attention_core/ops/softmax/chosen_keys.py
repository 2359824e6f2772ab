"""Softmax attention of each query to c keys of its own, given by position, without an n x n matrix.

It takes O(n c d) time. The result is a ``Part``, which can be merged with attention to other keys.
"""

import torch
from torch import Tensor

from attention_core.ops.softmax.partial import Part, placed

STEP = 2**13
"""Pairs of query and key per step, for each head."""


def chosen_rows(n: int, c: int) -> int:
    """Return the number of queries per step."""
    return min(n, max(1, STEP // c))


def chosen_keys_part(q: Tensor, k: Tensor, v: Tensor, index: Tensor, seen: Tensor) -> Part:
    """Return the attention of each query to its own set of keys.

    Args:
        q: ``[..., n, d]``, float32 or float64.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        index: positions of the keys, ``int64 [..., n, c]``, c >= 1.
        seen: which of these keys are allowed, ``bool [..., n, c]``.

    Returns:
        The output ``[..., n, d_v]`` and the log-sum-exp ``[..., n, 1]``, the lowest number if a query has no key.
    """
    n, rows = q.shape[-2], chosen_rows(q.shape[-2], index.shape[-1])
    keys, values = (x.reshape(-1, x.shape[-1]) for x in (k, v))
    head = torch.arange(len(keys) // n, device=q.device).reshape(*q.shape[:-2], 1, 1) * n

    def parts(start: int) -> Part:
        some = slice(start, start + rows)
        at, may = index[..., some, :] + head, seen[..., some, :]
        logits = (keys[at] @ q[..., some, :].unsqueeze(-1)).squeeze(-1) * q.shape[-1] ** -0.5
        logits = logits.masked_fill(~may, torch.finfo(q.dtype).min)
        weights = logits.softmax(-1).unsqueeze(-2)
        return (weights @ values[at]).squeeze(-2), logits.logsumexp(-1, keepdim=True)

    return placed((parts(start) for start in range(0, n, rows)), lambda outs: torch.cat(outs, -2))
