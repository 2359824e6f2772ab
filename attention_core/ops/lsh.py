"""Attention by locality-sensitive hashing: each of several rounds sorts tokens by hash and cuts them into chunks.

Each round gives every token a code: its chunk's number, plus its bucket's number if different buckets must not pair.
Query i attends to key j if ``0 <= code_i - code_j <= 1`` in some round. Key j is then in the query's chunk or in the
one before. The functions find these pairs without testing all n² pairs.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.random import normal
from attention_core.ops.softmax.partial import Part, partial_attention

PAIRS_PER_STEP = 2**17
"""Pairs of query and key in one step, over all heads: their mask, 512 KiB of float32, fits the processor's cache."""
EMPTY_SLOT = -2
"""Code of an empty slot; it pairs with no token, since the codes of tokens are never negative."""


def hash_sizes(buckets: float, largest: int) -> tuple[int, ...]:
    """Return the sizes (even numbers) of hashes that together make about ``buckets`` buckets; empty for one bucket.

    The product of the sizes is the number of buckets. One hash into b buckets costs n d b/2. A long text needs many
    buckets, and two hashes into √b buckets cost less.

    Args:
        buckets: the number of buckets wanted.
        largest: the approximate maximum size of one hash, 4 or more.
    """
    count = 0
    while buckets > largest**count:
        count += 1
    sizes: list[int] = []
    for remaining in range(count, 0, -1):
        sizes.append(max(2, 2 * round((buckets / math.prod(sizes)) ** (1 / remaining) / 2)))
    return tuple(sizes)


def hash_buckets(x: Tensor, sizes: Sequence[int], seed: int, round_index: int) -> Tensor:
    """Compute each token's bucket in one round, ``int64 [..., n]``: ``argmax [x R; -x R]``, R with N(0, 1) entries.

    A token's bucket depends on the token's direction alone. The smaller the angle between two tokens, the more likely
    they share a bucket. With several hashes, each combination of their results is a bucket. All heads and batches
    share R.

    Args:
        x: ``[..., n, d]``, float32 or float64.
        sizes: the sizes of the hashes, from ``hash_sizes``.
        seed: the user's seed.
        round_index: the number of the round; each round has its own R.
    """
    halves = [size // 2 for size in sizes]
    projections = x @ normal((x.shape[-1], sum(halves)), seed, x, round_index)
    bucket = torch.zeros(x.shape[:-1], dtype=torch.int64, device=x.device)
    for half, projection in zip(halves, projections.split(halves, -1), strict=True):
        # The argmax of [y; -y] is computed without joining y and -y. It is the index of the largest |y|: in the first
        # half if that entry of y is positive, otherwise in the second.
        largest = projection.abs().argmax(-1, keepdim=True)
        bucket = bucket * 2 * half + (largest + half * (projection.gather(-1, largest) < 0)).squeeze(-1)
    return bucket


class Chunks(NamedTuple):
    """The chunks of one round.

    Attributes:
        code: a number for each token, ``int32 [..., n]``, never negative. A query attends to keys whose code is equal
            or one less.
        slot: each token's slot among the ``n_chunks * size`` slots, ``int64 [..., n]``; slots may stay empty.
        n_chunks: number of chunks, the same for every batch and head.
        size: slots in a chunk.
    """

    code: Tensor
    slot: Tensor
    n_chunks: int
    size: int


def sorted_chunks(bucket: Tensor, size: int) -> Chunks:
    """Sort the tokens by (bucket, position) and cut them into chunks that may span several buckets.

    Only the last chunk may have empty slots.

    Args:
        bucket: ``int64 [..., n]``.
        size: tokens in a chunk.
    """
    n = bucket.shape[-1]
    size, n_chunks = min(size, n), max_chunks(n, 1, size)
    slot = _inverse_permutation(bucket_order(bucket))
    return Chunks((slot // size).int(), slot, n_chunks, size)


def bucket_chunks(bucket: Tensor, buckets: int, size: int) -> Chunks:
    """Cut each bucket, in order of position, into separate chunks; chunks of different buckets never pair.

    The keys of token i therefore depend only on the tokens up to i: later tokens move no chunk boundary.

    Args:
        bucket: ``int64 [..., n]`` below ``buckets``.
        buckets: number of buckets.
        size: tokens in a chunk; the last chunk of each bucket may have empty slots.
    """
    n = bucket.shape[-1]
    size, n_chunks = min(size, n), max_chunks(n, buckets, size)
    bucket_sizes = bucket.new_zeros(*bucket.shape[:-1], buckets).scatter_add_(-1, bucket, torch.ones_like(bucket))
    n_bucket_chunks = (bucket_sizes + size - 1) // size
    bucket_starts = (bucket_sizes.cumsum(-1) - bucket_sizes).gather(-1, bucket)
    position = _inverse_permutation(bucket_order(bucket)) - bucket_starts  # place of each token in its bucket
    slot = (n_bucket_chunks.cumsum(-1) - n_bucket_chunks).gather(-1, bucket) * size + position
    # A query attends to keys whose code is equal or one less. If the code were only the chunk's number, the first chunk
    # of a bucket would attend to the last chunk of the previous bucket. Adding the bucket's number prevents this.
    return Chunks((slot // size + bucket).int(), slot, n_chunks, size)


def bucket_order(bucket: Tensor) -> Tensor:
    """Sort the tokens by (bucket, position), ``int64 [..., n]``."""
    return bucket.argsort(dim=-1, stable=True)


def _inverse_permutation(order: Tensor) -> Tensor:
    position = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, position)


def max_chunks(n: int, groups: int, size: int) -> int:
    """Return the largest number of chunks of ``size`` slots for n tokens, if each group is cut separately."""
    size = min(size, n)
    # In the worst case, the last chunk of each non-empty group (for example a bucket) holds a single token and leaves
    # ``size - 1`` places empty. At most ``min(groups, n)`` groups are non-empty.
    return (n + min(groups, n) * (size - 1)) // size


def _adjacent(query: Tensor, key: Tensor) -> Tensor:
    """Return where ``0 <= query - key <= 1``; there, all bits of the difference except the last are zero."""
    return (query - key).bitwise_and_(-2) == 0


def lsh_attention(q: Tensor, k: Tensor, v: Tensor, *, rounds: Sequence[Chunks], causal: bool) -> Tensor:
    """Compute ``softmax(q kᵀ) v`` over the pairs that some round allows, ``[..., n, d_v]``.

    This tests O(rounds · n · size) pairs. A token attends to itself only if it attends to no other token.

    A pair counts in the first round that allows it and is hidden in later rounds. So the rounds partition the union of
    pairs, and their outputs are merged by their log-sum-exps to the softmax over the union. In the paper,
    a pair is divided equally among the rounds that allow it, which gives the same sum.

    Args:
        q: ``[..., n, d]``, float32 or float64.
        k: as q.
        v: ``[..., n, d_v]``.
        rounds: each round's chunks.
        causal: whether query i attends to keys before i only.
    """
    n = q.shape[-2]
    tokens = [x.reshape(-1, x.shape[-1]) for x in (q, k, v)]
    head = torch.arange(len(tokens[0]), device=q.device) // n
    out, lse = torch.zeros_like(tokens[2]), torch.full_like(tokens[0][:, :1], -torch.inf)
    codes: list[Tensor] = []
    for chunks in rounds:
        # All heads are computed as one long row of chunks. Codes of different heads differ by at least 2, so that no
        # tokens of different heads pair.
        codes.append(chunks.code.flatten() + head.int() * (chunks.code.max() + 2))
        slot = chunks.slot.flatten() + head * chunks.n_chunks * chunks.size
        chunk_count = len(head) // n * chunks.n_chunks
        new_out, new_lse = _round(tokens, codes, slot, chunk_count, chunks.size, causal=causal)
        total_lse = torch.logaddexp(lse, new_lse)
        out, lse = torch.lerp(out, new_out, (new_lse - total_lse).exp()), total_lse
    # Hidden pairs have the lowest finite logit. A log-sum-exp near that number means that a token has no other pair; it
    # then attends to itself, and its output is its own value.
    without_keys = lse < torch.finfo(q.dtype).min / 4
    return torch.where(without_keys, tokens[2], out).reshape(v.shape)


def _round(
    tokens: list[Tensor], codes: list[Tensor], slot: Tensor, chunk_count: int, size: int, *, causal: bool
) -> Part:
    """Return each token's output and log-sum-exp over the pairs that only the last round allows.

    Args:
        tokens: q, k and v of all heads, ``[heads * n, ...]``.
        codes: every token's code in each round so far.
        slot: every token's slot in the last round.
        chunk_count: chunks of all heads.
        size: slots in a chunk.
        causal: whether query i attends to keys before i only.
    """
    step = step_size(max(1, PAIRS_PER_STEP // (2 * size**2)), slot.device, numbers=2 * size**2)

    def queries(x: Tensor) -> tuple[Tensor, ...]:
        return x[size:].unflatten(0, (-1, size)).split(step)

    def keys(x: Tensor) -> tuple[Tensor, ...]:
        return x.unfold(0, 2 * size, size).split(step)

    # An empty chunk is added before the first, so that every chunk has a previous one.
    token_of_slot = slot.new_zeros((chunk_count + 1) * size)
    token_of_slot.scatter_(0, slot + size, torch.arange(len(slot), device=slot.device))
    code_of_slot = codes[-1].new_full(token_of_slot.shape, EMPTY_SLOT).scatter_(0, slot + size, codes[-1])
    slot_fields = [token_of_slot.int(), code_of_slot, *(code[token_of_slot] for code in codes[:-1])]
    q, k, v = (x.index_select(0, token_of_slot) for x in tokens)
    parts = [
        partial_attention(*views, mask=_new_pairs(i, j, causal=causal))
        for *views, i, j in zip(
            (x.unsqueeze(1) * q.shape[-1] ** 0.5 for x in queries(q)),
            (x.mT.unsqueeze(1) for x in keys(k)),
            (x.mT.unsqueeze(1) for x in keys(v)),
            zip(*map(queries, slot_fields), strict=True),
            zip(*map(keys, slot_fields), strict=True),
            strict=True,
        )
    ]
    del q, k, v  # free the sorted copies
    out, lse = (torch.cat(x).flatten(0, 2).index_select(0, slot) for x in zip(*parts, strict=True))
    return out, lse


def _new_pairs(query: Sequence[Tensor], key: Sequence[Tensor], *, causal: bool) -> Tensor:
    """Return the pairs that this round allows and no earlier round allowed, ``bool [chunks, 1, size, 2 size]``.

    Args:
        query: position, code in this round and codes in the earlier rounds, each ``[chunks, size]``.
        key: the same for the keys, each ``[chunks, 2 size]``.
        causal: whether query i attends to keys before i only.
    """
    i, code_i, *earlier_codes_i = (x.unsqueeze(-1) for x in query)
    j, code_j, *earlier_codes_j = (x.unsqueeze(-2) for x in key)
    allowed = _adjacent(code_i, code_j) & (j < i if causal else j != i)
    for earlier_i, earlier_j in zip(earlier_codes_i, earlier_codes_j, strict=True):
        allowed &= ~_adjacent(earlier_i, earlier_j)
    return allowed.unsqueeze(1)


def largest_block(n: int, groups: int, size: int) -> int:
    """Return the largest number of one head's pairs in one step of ``lsh_attention``.

    ``groups`` as in ``max_chunks``.
    """
    size = min(size, n)
    return min(max(1, PAIRS_PER_STEP // (2 * size**2)), max_chunks(n, groups, size)) * 2 * size**2
