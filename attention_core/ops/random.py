"""Random numbers that are a pure function of a seed: the same on every device, in every precision, at every length."""

import hashlib

import torch
from torch import Tensor

TILE = 64
"""Side of the squares an endless table is drawn in: changing it changes every table."""


def generator(seed: int, *stream: int) -> torch.Generator:
    """A CPU generator of its own for a seed and the whole numbers that tell its uses apart; the global one rests."""
    # torch keeps 32 bits of a CPU seed and neighbouring seeds are common: hashing spreads (seed, stream) over them.
    digest = hashlib.blake2b(repr((seed, *stream)).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))


def normal(shape: tuple[int, ...], seed: int, like: Tensor, *stream: int) -> Tensor:
    """N(0, 1) numbers of this shape.

    Args:
        shape: of the result.
        seed: the user's seed.
        like: the tensor whose device and dtype the result takes. Numbers are drawn on the CPU in float32 and then
            moved, so that every device and precision sees the same.
        stream: whole numbers that tell several draws of one seed apart.
    """
    return torch.randn(shape, generator=generator(seed, *stream)).to(like)


def normal_table(rows: range, columns: int, seed: int, like: Tensor, *stream: int) -> Tensor:
    """These rows and the first columns of one endless N(0, 1) table, ``[len(rows), columns]``.

    The entry at (i, j) is the same whichever part is asked for: a longer input meets the numbers a shorter one met.

    Args:
        rows: consecutive row numbers.
        columns: how many columns, from the first.
        seed: the user's seed.
        like: the tensor whose device and dtype the result takes.
        stream: whole numbers that tell several tables of one seed apart.
    """
    table = torch.empty(len(rows), columns)
    for top in range(rows.start // TILE * TILE, rows.stop, TILE):
        for left in range(0, columns, TILE):
            tile = torch.randn(TILE, TILE, generator=generator(seed, *stream, top, left))
            tile = tile[max(rows.start - top, 0) : rows.stop - top, : columns - left]
            table[max(top - rows.start, 0) :, left:][: tile.shape[0], : tile.shape[1]] = tile
    return table.to(like)
