"""Sequences sorted by position modulo a stride: pairs a multiple of the stride apart become neighbours."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor


def residues(x: Tensor, stride: int) -> Iterator[Tensor]:
    """The tokens of ``[..., n, e]`` by ``position mod stride``, as views ``[X, classes, length, e]``.

    Two groups at most: the first ``n mod stride`` classes are one token longer than the others. So no class needs
    padding or a mask.
    """
    x = x.reshape(-1, *x.shape[-2:])
    longer = x.shape[-2] % stride
    for group, size in ((x, longer), (x[:, longer:], stride - longer)):
        if size and group.shape[-2] >= size:
            # A window per round of the stride holds this group's classes: [X, length, e, classes].
            yield group.unfold(-2, size, stride).permute(0, 3, 1, 2)


def restored(outs: Iterable[Tensor], like: Tensor, stride: int) -> Tensor:
    """The groups' outputs ``[X, classes, length, e]`` in the tokens' own order, ``[..., n, e]``."""
    first, *rest = outs
    result = first.new_empty(*like.shape[:-1], first.shape[-1])
    # Each view is made after the write before it, as autograd wants.
    for place, out in zip(residues(result, stride), [first, *rest], strict=True):
        place.copy_(out)
    return result


def residue_pairs(n: int, stride: int) -> int:
    """Pairs of query and key a multiple of the stride apart, diagonal included."""
    longer = n % stride
    return longer * (n // stride + 1) ** 2 + (stride - longer) * (n // stride) ** 2


def same_residue(distance: Tensor, stride: int) -> Tensor:
    """Whether positions this far apart share their residue."""
    return torch.remainder(distance, stride) == 0
