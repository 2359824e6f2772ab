"""Running combinations along an axis (prefix scans), in O(n) work and log n rounds, by pairing neighbours."""

from collections.abc import Callable

import torch
from torch import Tensor

Items = tuple[Tensor, ...]


def prefix_scan(combine: Callable[[Items, Items], Items], items: Items) -> Items:
    """All running results ``x_0, x_0∘x_1, x_0∘x_1∘x_2, ...`` along the first axis.

    Args:
        combine: an associative operation on tuples of tensors; its left argument holds the earlier positions.
        items: tensors with a common first axis.
    """
    n = items[0].shape[0]
    if n == 1:
        return items
    even, odd = tuple(x[0::2] for x in items), tuple(x[1::2] for x in items)
    at_odd = prefix_scan(combine, combine(tuple(x[: n // 2] for x in even), odd))
    at_even = combine(tuple(x[: (n - 1) // 2] for x in at_odd), tuple(x[1:] for x in even))
    results = []
    for first, rest, other in zip(even, at_even, at_odd, strict=True):
        result = other.new_empty(n, *other.shape[1:])
        result[0], result[2::2], result[1::2] = first[0], rest, other
        results.append(result)
    return tuple(results)


def running_max(x: Tensor, dim: int = -2) -> Tensor:
    """``max_{j <= i} x_j``; several times faster than ``torch.cummax`` on a CPU."""
    (result,) = prefix_scan(lambda a, b: (torch.maximum(a[0], b[0]),), (x.movedim(dim, 0),))
    return result.movedim(0, dim)


def running_sum(x: Tensor, reference: Tensor | None = None, dim: int = -2) -> Tensor:
    """``Σ_{j <= i} e^{R_j - R_i} x_j``.

    Args:
        x: the terms.
        reference: ``R``, broadcastable to ``x`` and of its length along ``dim``, never falling along it, so that no
            exponential exceeds one; None means a plain cumulative sum.
        dim: the axis of positions.
    """
    if reference is None:
        return x.cumsum(dim)

    def combine(earlier: Items, later: Items) -> Items:
        return later[0] + earlier[0] * (earlier[1] - later[1]).exp(), later[1]

    result, _ = prefix_scan(combine, (x.movedim(dim, 0), reference.movedim(dim, 0)))
    return result.movedim(0, dim)
