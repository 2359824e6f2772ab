"""Views that group the tokens, so that dense attention kernels can compute a sparse pattern.

A band around the diagonal is cut into blocks of queries, each with the keys that it can attend to. For strided
patterns, tokens are grouped by their position modulo the stride, so that tokens a multiple of the stride apart become
neighbours.
"""

from collections.abc import Iterable, Iterator

from torch import Tensor

BLOCK = 32
"""Queries in one block of a band. Smaller blocks compute fewer pairs outside the band; larger ones run faster."""


def block_extent(index: int, n: int, block: int, before: int, after: int) -> tuple[range, range]:
    """Return the positions of one block's queries and of the keys that they can attend to.

    Args:
        index: the number of the block.
        n: the number of tokens.
        block: queries per block; the last block may have fewer.
        before: the number of keys before a block's first query.
        after: the number of keys after a block's last query.
    """
    start, stop = index * block, min((index + 1) * block, n)
    return range(start, stop), range(max(start - before, 0), min(stop + after, n))


def block_runs(n: int, block: int, before: int, after: int) -> Iterator[tuple[int, int]]:
    """Yield the runs, which are consecutive blocks of one shape, as pairs of the first and the last block, in order.

    Arguments as in ``block_extent``.
    """
    blocks = -(-n // block)
    first_full = -(-before // block)  # the first block whose keys start inside the sequence
    end_full = (n - after) // block  # the first block whose queries or keys would reach beyond the end of the sequence
    if first_full >= end_full:
        first_full = end_full = blocks
    yield from ((b, b) for b in range(first_full))
    if first_full < end_full:
        yield first_full, end_full - 1
    yield from ((b, b) for b in range(end_full, blocks))


def window_pairs(n: int, *, block: int, before: int = 0, after: int = 0) -> int:
    """Return the number of pairs of all blocks as in ``block_extent``, including pairs that a mask excludes."""
    extents = (block_extent(b, n, block, before, after) for b in range(-(-n // block)))
    return sum(len(rows) * len(columns) for rows, columns in extents)


def residue_groups(x: Tensor, stride: int) -> Iterator[Tensor]:
    """Yield the tokens of ``[..., n, e]`` by ``position mod stride``, as views ``[X, classes, length, e]``.

    There are at most two groups, since the first ``n mod stride`` classes are one token longer than the others. No
    class needs padding or a mask.
    """
    x = x.reshape(-1, *x.shape[-2:])
    longer_classes = x.shape[-2] % stride
    for group, size in ((x, longer_classes), (x[:, longer_classes:], stride - longer_classes)):
        if size and group.shape[-2] >= size:
            # ``unfold`` returns a window of ``size`` tokens at each multiple of the stride, [X, length, e, classes].
            # The c-th tokens of all windows have equal positions modulo the stride, so they form one class.
            yield group.unfold(-2, size, stride).permute(0, 3, 1, 2)


def restore_token_order(outputs: Iterable[Tensor], like: Tensor, stride: int) -> Tensor:
    """Put the groups' outputs ``[X, classes, length, e]`` into the order of the tokens, ``[..., n, e]``."""
    first, *others = outputs
    result = first.new_empty(*like.shape[:-1], first.shape[-1])
    # Autograd does not allow writing to a view that was made before the last write to ``result``, so
    # ``residue_groups`` makes each view just before it is written.
    for view, out in zip(residue_groups(result, stride), [first, *others], strict=True):
        view.copy_(out)
    return result
