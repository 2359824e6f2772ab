"""Random numbers that depend only on a seed, and not on the device, the precision or the number of tokens."""

import hashlib

import torch
from torch import Tensor

TILE = 64
"""Side of the square tiles in which ``normal_table`` draws; changing it changes every table."""


def generator(seed: int, *stream: int) -> torch.Generator:
    """Return a new CPU generator for a seed and further whole numbers; the global generator is not used."""
    # torch uses only 32 bits of a seed on the CPU, and visitors choose neighbouring seeds such as 0 and 1. A hash turns
    # every (seed, stream) into 32 well-mixed bits.
    digest = hashlib.blake2b(repr((seed, *stream)).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))


def normal(shape: tuple[int, ...], seed: int, like: Tensor, *stream: int) -> Tensor:
    """Draw N(0, 1) numbers.

    Args:
        shape: the shape of the result.
        seed: the user's seed.
        like: the tensor whose device and dtype the result takes. Numbers are drawn on the CPU in float32 and then
            converted, so that they are equal on every device and in every precision.
        stream: whole numbers that distinguish several draws with one seed.
    """
    return _drawn(shape, seed, *stream).to(like)


def normal_table(rows: range, columns: int, seed: int, like: Tensor, *stream: int) -> Tensor:
    """Return some rows and the first columns of one infinite N(0, 1) table, ``[len(rows), columns]``.

    The entry at (i, j) does not depend on the part requested, so a longer input starts with the numbers of a
    shorter one.

    Args:
        rows: consecutive row numbers.
        columns: number of columns, from the first.
        seed: the user's seed.
        like: the tensor whose device and dtype the result takes.
        stream: whole numbers that distinguish several tables with one seed.
    """
    table = torch.empty(len(rows), columns, dtype=torch.float32, device="cpu")
    for top in range(rows.start // TILE * TILE, rows.stop, TILE):
        for left in range(0, columns, TILE):
            tile = _drawn((TILE, TILE), seed, *stream, top, left)
            tile = tile[max(rows.start - top, 0) : rows.stop - top, : columns - left]
            table[max(top - rows.start, 0) :, left:][: tile.shape[0], : tile.shape[1]] = tile
    return table.to(like)


def _drawn(shape: tuple[int, ...], seed: int, *stream: int) -> Tensor:
    """Draw N(0, 1) numbers in float32 on the CPU, for any default type and device of torch."""
    return torch.randn(shape, generator=generator(seed, *stream), dtype=torch.float32, device="cpu")
