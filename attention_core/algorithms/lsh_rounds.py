"""Several rounds of hashing over a text: which stretch is hashed how, and which pairs the rounds find together."""

import math
from typing import Protocol

import torch
from torch import Tensor

from attention_core.algorithms import lsh
from attention_core.algorithms.precision import widened


class Hashing(Protocol):
    """How a text is hashed: tokens in a chunk, how often, and by which directions."""

    @property
    def bucket_size(self) -> int:
        """Tokens in a chunk, and about how many share a bucket."""

    @property
    def rounds(self) -> int:
        """How often the tokens are hashed."""

    @property
    def seed(self) -> int:
        """What decides the directions."""


def spans(n: int, p: Hashing, *, causal: bool) -> list[tuple[int, int, tuple[int, ...]]]:
    """Stretches of queries ``start <= i < stop`` and how they and all tokens before ``stop`` are hashed for them."""
    c = p.bucket_size
    if not causal:
        return [(0, n, lsh.hash_sizes(max(2, n / c), max(4, c)))]
    found, start, stop = [], 0, 2 * c
    while start < n:
        found.append((start, min(stop, n), lsh.hash_sizes(stop / (2 * c), max(4, c))))
        start, stop = stop, 4 * stop
    return found


def hashed(q: Tensor, stop: int, sizes: tuple[int, ...], p: Hashing) -> list[Tensor]:
    """Each round's bucket of the tokens before ``stop``, ``int64 [..., stop]``."""
    return [lsh.hash_buckets(q[..., :stop, :], sizes, p.seed, number) for number in range(p.rounds)]


def chunked(buckets: list[Tensor], sizes: tuple[int, ...], p: Hashing, *, causal: bool) -> list[lsh.Chunks]:
    """Each round's chunks."""
    if causal:
        return [lsh.bucket_chunks(bucket, math.prod(sizes), p.bucket_size) for bucket in buckets]
    return [lsh.sorted_chunks(bucket, p.bucket_size) for bucket in buckets]


def near_and_alike(q: Tensor, p: Hashing, *, causal: bool) -> tuple[Tensor, Tensor]:
    """The pairs that some round finds, and the pairs of two tokens with a bucket in common, ``bool [..., n, n]``."""
    q, n = widened(q), q.shape[-2]
    near, same = torch.zeros(2, *q.shape[:-1], n, dtype=torch.bool, device=q.device)
    for start, stop, sizes in spans(n, p, causal=causal):
        rounds = hashed(q, stop, sizes, p)
        found = lsh.near_pairs(chunked(rounds, sizes, p, causal=causal), causal=causal)
        near[..., start:stop, :stop] = found[..., start:, :]
        for bucket in rounds:
            same[..., start:stop, :stop] |= bucket[..., start:, None] == bucket[..., None, :]
    return near, same.tril(-1) if causal else same & ~torch.eye(n, dtype=torch.bool, device=q.device)
