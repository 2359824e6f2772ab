"""Attention among tokens that a random hash puts together: buckets, chunks, and the union over several rounds.

A round gives each token a code, and query i looks at key j when ``0 <= code_i - code_j <= 1``: its own chunk and the
one before. That comparison is the whole definition; the rest finds its true pairs without trying all n².
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.random import normal
from attention_core.ops.softmax.partial import Part, partial_attention

STEP = 2**17
"""Pairs of query and key handled at once, over all heads: their mask, 512 KiB of float32, stays in the cache."""
NOWHERE = -2
"""Code of an empty place: no token's code, which is never negative, is the same or one more."""


def hash_sizes(buckets: float, largest: int) -> tuple[int, ...]:
    """Sizes, each even, of the hashes whose buckets, numbered together, make about so many; none for one bucket.

    One hash into b buckets costs n d b/2 and a long text wants many buckets: two hashes of √b buckets cost less.

    Args:
        buckets: how many are wanted.
        largest: about the largest size of one hash, 4 or more.
    """
    count = 0
    while buckets > largest**count:
        count += 1
    sizes: list[int] = []
    for left in range(count, 0, -1):
        sizes.append(max(2, 2 * round((buckets / math.prod(sizes)) ** (1 / left) / 2)))
    return tuple(sizes)


def hash_buckets(x: Tensor, sizes: Sequence[int], seed: int, number: int) -> Tensor:
    """The bucket of each token in one round, ``int64 [..., n]``: ``argmax [x R; -x R]``, R with N(0, 1) entries.

    A token's bucket depends on its own direction alone; two tokens share it the likelier, the smaller their angle.
    All heads and batches share R.

    Args:
        x: ``[..., n, d]``, float32 or float64.
        sizes: of the hashes, from ``hash_sizes``.
        seed: the user's seed.
        number: of the round; each round has its own R.
    """
    halves = [size // 2 for size in sizes]
    near = x @ normal((x.shape[-1], sum(halves)), seed, x, number)
    bucket = torch.zeros(x.shape[:-1], dtype=torch.int64, device=x.device)
    for half, part in zip(halves, near.split(halves, -1), strict=True):
        # The largest of [y; -y] is the largest |y|, at the end that its sign tells.
        best = part.abs().argmax(-1, keepdim=True)
        bucket = bucket * 2 * half + (best + half * (part.gather(-1, best) < 0)).squeeze(-1)
    return bucket


class Chunks(NamedTuple):
    """One round's chunks.

    Attributes:
        code: who sees whom, ``int32 [..., n]``, never negative.
        slot: each token's place among ``rows * size`` places in chunks, ``int64 [..., n]``; places may stay empty.
        rows: number of chunks, the same for every batch and head.
        size: places in a chunk.
    """

    code: Tensor
    slot: Tensor
    rows: int
    size: int


def sorted_chunks(bucket: Tensor, size: int) -> Chunks:
    """Sort by (bucket, position) and cut into chunks, wherever buckets end; only the last chunk may be part empty.

    Args:
        bucket: ``int64 [..., n]``.
        size: tokens in a chunk.
    """
    n = bucket.shape[-1]
    size, rows = min(size, n), chunk_rows(n, 1, size)
    slot = _place(order(bucket))
    return Chunks((slot // size).int(), slot, rows, size)


def bucket_chunks(bucket: Tensor, buckets: int, size: int) -> Chunks:
    """Cut each bucket, in order of position, into chunks of its own; chunks of different buckets never see each other.

    So the tokens up to i decide which of them i sees: a later token moves no border between them.

    Args:
        bucket: ``int64 [..., n]`` below ``buckets``.
        buckets: number of buckets.
        size: tokens in a chunk; the last chunk of each bucket may be part empty.
    """
    n = bucket.shape[-1]
    size, rows = min(size, n), chunk_rows(n, buckets, size)
    count = bucket.new_zeros(*bucket.shape[:-1], buckets).scatter_add_(-1, bucket, torch.ones_like(bucket))
    chunks = (count + size - 1) // size
    rank = _place(order(bucket)) - (count.cumsum(-1) - count).gather(-1, bucket)
    slot = (chunks.cumsum(-1) - chunks).gather(-1, bucket) * size + rank
    # Adding the bucket leaves a gap between the codes of two buckets, though their chunks be neighbours.
    return Chunks((slot // size + bucket).int(), slot, rows, size)


def order(bucket: Tensor) -> Tensor:
    """The tokens by (bucket, position), ``int64 [..., n]``."""
    return bucket.argsort(dim=-1, stable=True)


def _place(order: Tensor) -> Tensor:
    """Each token's place in an order, its inverse."""
    position = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, position)


def chunk_rows(n: int, runs: int, size: int) -> int:
    """The most chunks that n tokens in so many separate runs can fill: the last chunk of a run may hold one token."""
    size = min(size, n)
    return (n + min(runs, n) * (size - 1)) // size


def _near(query: Tensor, key: Tensor) -> Tensor:
    """Whether ``0 <= query - key <= 1``: all bits of the difference but the last are zero."""
    return (query - key).bitwise_and_(-2) == 0


def lsh_attention(q: Tensor, k: Tensor, v: Tensor, *, rounds: Sequence[Chunks], causal: bool) -> Tensor:
    """``softmax(q kᵀ) v`` over the pairs that some round finds, ``[..., n, d_v]``, trying O(rounds · n · size) of them.

    A token sees itself only where it sees nothing else.

    A pair counts in the first round that finds it and is hidden in later ones, so the rounds share out the union and
    merge by their log-sum-exps to its softmax. (The paper gives each of them an equal part of the pair: the same sum.)

    Args:
        q: ``[..., n, d]``, float32 or float64.
        k: as q.
        v: ``[..., n, d_v]``.
        rounds: each round's chunks.
        causal: whether query i sees keys before i only.
    """
    n = q.shape[-2]
    tokens = [x.reshape(-1, x.shape[-1]) for x in (q, k, v)]
    head = torch.arange(len(tokens[0]), device=q.device) // n
    out, lse = torch.zeros_like(tokens[2]), torch.full_like(tokens[0][:, :1], -torch.inf)
    codes: list[Tensor] = []
    for chunks in rounds:
        # All heads form one long row of chunks, with a gap between the codes of two heads.
        codes.append(chunks.code.flatten() + head.int() * (chunks.code.max() + 2))
        slot = chunks.slot.flatten() + head * chunks.rows * chunks.size
        rows = len(head) // n * chunks.rows
        new_out, new_lse = _round(tokens, codes, slot, rows, chunks.size, causal=causal)
        both = torch.logaddexp(lse, new_lse)
        out, lse = torch.lerp(out, new_out, (new_lse - both).exp()), both
    # Where no round found a pair, the log-sum-exp is that of hidden ones.
    lonely = lse < torch.finfo(q.dtype).min / 4
    return torch.where(lonely, tokens[2], out).reshape(v.shape)


def _round(tokens: list[Tensor], codes: list[Tensor], slot: Tensor, rows: int, size: int, *, causal: bool) -> Part:
    """Output and log-sum-exp of every token over the pairs that the last of these rounds is the first to find.

    Args:
        tokens: q, k and v of all heads, ``[heads * n, ...]``.
        codes: every token's code in each round so far.
        slot: every token's place in the last of them.
        rows: chunks of all heads.
        size: places in a chunk.
        causal: whether query i sees keys before i only.
    """
    step = max(1, STEP // (2 * size**2))

    def queries(x: Tensor) -> tuple[Tensor, ...]:
        return x[size:].unflatten(0, (-1, size)).split(step)

    def keys(x: Tensor) -> tuple[Tensor, ...]:
        return x.unfold(0, 2 * size, size).split(step)

    # An empty chunk stands first.
    held = slot.new_zeros((rows + 1) * size)
    held.scatter_(0, slot + size, torch.arange(len(slot), device=slot.device))
    here = codes[-1].new_full(held.shape, NOWHERE).scatter_(0, slot + size, codes[-1])
    about = [held.int(), here, *(code[held] for code in codes[:-1])]
    q, k, v = (x.index_select(0, held) for x in tokens)
    parts = [
        partial_attention(*views, mask=_first_seen(i, j, causal=causal))
        for *views, i, j in zip(
            (x.unsqueeze(1) * q.shape[-1] ** 0.5 for x in queries(q)),
            (x.mT.unsqueeze(1) for x in keys(k)),
            (x.mT.unsqueeze(1) for x in keys(v)),
            zip(*map(queries, about), strict=True),
            zip(*map(keys, about), strict=True),
            strict=True,
        )
    ]
    del q, k, v  # the sorted copies are done with
    out, lse = (torch.cat(x).flatten(0, 2).index_select(0, slot) for x in zip(*parts, strict=True))
    return out, lse


def _first_seen(query: Sequence[Tensor], key: Sequence[Tensor], *, causal: bool) -> Tensor:
    """The pairs that this round finds and no earlier one did, ``bool [chunks, 1, size, 2 size]``.

    Args:
        query: position, code in this round and codes in the earlier rounds, each ``[chunks, size]``.
        key: the same of the keys, each ``[chunks, 2 size]``.
        causal: whether query i sees keys before i only.
    """
    (i, code_i, *before_i), (j, code_j, *before_j) = [x.unsqueeze(-1) for x in query], [x.unsqueeze(-2) for x in key]
    seen = _near(code_i, code_j) & (j < i if causal else j != i)
    for earlier_i, earlier_j in zip(before_i, before_j, strict=True):
        seen &= ~_near(earlier_i, earlier_j)
    return seen.unsqueeze(1)


def largest_block(n: int, runs: int, size: int) -> int:
    """The most pairs of one head that ``lsh_attention`` handles at once."""
    size = min(size, n)
    return min(max(1, STEP // (2 * size**2)), chunk_rows(n, runs, size)) * 2 * size**2
