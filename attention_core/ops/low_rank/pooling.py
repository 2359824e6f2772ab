"""Pooling: each segment of neighbouring tokens is reduced to one row, and results are repeated for all its tokens.

Many papers pad with zeros to the next multiple of the segment size, which biases the last mean. Segments whose sizes
differ by at most one avoid this at the cost of one more reshape.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor


class Run(NamedTuple):
    """Consecutive segments of one size: their number, and the tokens in each."""

    number: int
    size: int


Segments = tuple[Run, ...]
"""The segments of all tokens in order, as runs of segments of one size."""


def even_segments(n: int, m: int) -> Segments:
    """Cut n tokens into ``min(m, n)`` segments whose sizes differ by at most one, the longer ones first."""
    if n == 0:
        return ()
    m = min(m, n)
    size, longer = divmod(n, m)
    return tuple(run for run in (Run(longer, size + 1), Run(m - longer, size)) if run.number)


def strided_segments(n: int, stride: int) -> Segments:
    """Cut n tokens into the fewest segments of at most ``stride`` tokens; their sizes differ by at most one."""
    return even_segments(n, -(-n // stride))


def pool(x: Tensor, segments: Segments, how: str = "mean", learned: Tensor | None = None) -> Tensor:
    """Reduce the rows of each segment to one row, ``[..., m, d]``, in O(n d) time.

    Args:
        x: ``[..., n, d]``.
        segments: the segments of the n tokens.
        how: ``"mean"``; ``"max"``, of each component separately; ``"conv"``, a weighted mean with a triangular window,
            like a convolution whose window is as wide as its stride.
        learned: logarithms of factors by which a trained model multiplies the weights of a mean, one for each place in
            the largest segment.
    """
    if how == "max":
        parts = [rows.amax(-2) for rows in _by_run(x, segments)]
    elif how == "conv" or learned is not None:
        parts = [(rows * _window(rows.shape[-2], x, how, learned)).sum(-2) for rows in _by_run(x, segments)]
    else:
        parts = [rows.mean(-2) for rows in _by_run(x, segments)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def spread(x: Tensor, segments: Segments) -> Tensor:
    """Repeat each segment's row for all of its tokens, ``[..., m, d]`` to ``[..., n, d]``."""
    n = sum(run.number * run.size for run in segments)
    out = x.new_empty(*x.shape[:-2], n, x.shape[-1])
    runs = x.split([run.number for run in segments], -2)
    for rows, pooled in zip(_by_run(out, segments), runs, strict=True):
        rows.copy_(pooled.unsqueeze(-2))
    return out


def pooling_matrix(segments: Segments, like: Tensor, how: str = "mean", learned: Tensor | None = None) -> Tensor:
    """Return ``P`` with ``P x = pool(x)``, ``[m, n]``: each row holds the weights of one segment's tokens.

    Args:
        segments: the segments of the n tokens.
        like: the tensor whose device and dtype the matrix takes.
        how: ``"mean"`` or ``"conv"``; a maximum is not linear.
        learned: as in ``pool``.
    """
    n = sum(run.number * run.size for run in segments)
    return pool(torch.eye(n, device=like.device, dtype=like.dtype), segments, how, learned)


def spreading_matrix(segments: Segments, like: Tensor) -> Tensor:
    """Return ``R`` with ``R x = spread(x)``, ``[n, m]``, ones and zeros."""
    m = sum(run.number for run in segments)
    return spread(torch.eye(m, device=like.device, dtype=like.dtype), segments)


def _by_run(x: Tensor, segments: Segments) -> Iterator[Tensor]:
    """Yield the tokens of each run as a view, ``[..., number, size, d]``."""
    start = 0
    for run in segments:
        stop = start + run.number * run.size
        yield x[..., start:stop, :].unflatten(-2, run)
        start = stop


def _window(size: int, like: Tensor, how: str, learned: Tensor | None) -> Tensor:
    """Return weights that sum to one, ``[size, 1]``: equal, or triangular for "conv", times any learned factors."""
    place = torch.arange(size, dtype=torch.float64, device=like.device)
    window = torch.minimum(place + 1, size - place) if how == "conv" else torch.ones_like(place)
    if learned is not None:
        window = window * learned[:size].double().exp()
    return (window / window.sum()).to(like.dtype)[:, None]
