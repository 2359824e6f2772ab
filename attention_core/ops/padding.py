"""Attention if some keys are padding: batch entries with equal padding are computed together, without padding keys.

The result is exactly that of inputs without padding. This holds for every algorithm that accepts fewer keys than
queries.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor


def weights(compute: Callable[[Tensor, Tensor], Tensor], q: Tensor, k: Tensor, key_mask: Tensor) -> Tensor:
    """Return the matrix ``[..., n, m]``, zero for the keys that the mask hides.

    Args:
        compute: ``(q, k) -> [..., n, m]``.
        q: ``[..., n, d]``.
        k: ``[..., m, d]``.
        key_mask: bool ``[m]``, or ``[..., m]`` with the first axes of k; true for the keys that are not padding.
    """
    queries, keys = (_batched(x, key_mask) for x in (q, k))
    out = q.new_zeros(*queries.shape[:-1], k.shape[-2])
    for members, seen in _groups(key_mask):
        found = compute(queries[members], keys[members][..., seen, :])
        out[members] = q.new_zeros(*found.shape[:-1], k.shape[-2]).index_copy(-1, seen, found)
    return out.reshape(*q.shape[:-1], k.shape[-2])


def attend(
    compute: Callable[[Tensor, Tensor, Tensor], Tensor], q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor
) -> Tensor:
    """Return the output ``[..., n, d_v]`` of attention to the keys that the mask shows; zero if it shows none.

    Args:
        compute: ``(q, k, v) -> [..., n, d_v]``.
        q: ``[..., n, d]``.
        k: ``[..., m, d]``.
        v: ``[..., m, d_v]``.
        key_mask: as for ``weights``.
    """
    queries, keys, values = (_batched(x, key_mask) for x in (q, k, v))
    out = v.new_zeros(*queries.shape[:-1], v.shape[-1])
    for members, seen in _groups(key_mask):
        out[members] = compute(queries[members], keys[members][..., seen, :], values[members][..., seen, :])
    return out.reshape(*q.shape[:-1], v.shape[-1])


def _batched(x: Tensor, key_mask: Tensor) -> Tensor:
    """Flatten the leading axes that x shares with the mask into one axis.

    For a mask ``[m]``, add an axis of length 1.
    """
    return x.unsqueeze(0) if key_mask.ndim == 1 else x.flatten(0, key_mask.ndim - 2)


def _groups(key_mask: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each distinct mask, the batch entries with this mask and the positions of the keys that it shows.

    Both are int64 indices. Masks without keys are left out.
    """
    masks, group = key_mask.reshape(-1, key_mask.shape[-1]).unique(dim=0, return_inverse=True)
    for i, mask in enumerate(masks):
        if mask.any():
            yield torch.nonzero(group == i).flatten(), torch.nonzero(mask).flatten()
