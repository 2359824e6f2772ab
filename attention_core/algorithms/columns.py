"""All queries against the keys at a few positions, a part of a larger pattern."""

from collections.abc import Callable

import torch
from torch import Tensor

from attention_core.algorithms.partial import Part, partial_attention, placed
from attention_core.algorithms.windows import gathered

ROWS = 128
"""Queries whose masks over the columns are held at once."""


def column_part(
    q: Tensor, k: Tensor, v: Tensor, columns: Tensor, allowed: Callable[[Tensor, Tensor], Tensor] | None = None
) -> Part:
    """Partial attention of every query to the keys at ``columns``, O(n S d).

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        columns: positions of the keys, ``[S]`` with ``S >= 1``.
        allowed: says of query positions ``[rows, 1]`` and key positions ``[S]`` which pairs may look; None means all.
    """
    keys, values, queries = (x.reshape(-1, 1, *x.shape[-2:]) for x in (k[..., columns, :], v[..., columns, :], q))
    position = torch.arange(q.shape[-2], device=q.device)[:, None]
    groups = (
        partial_attention(rows, keys, values, mask=None if allowed is None else allowed(i, columns))
        for rows, i in zip(queries.split(ROWS, -2), position.split(ROWS), strict=True)
    )
    return placed(groups, lambda outs: gathered(outs, q))
