"""Blocks of consecutive keys: how a query scores them, and how it attends to those that were chosen for it.

A query's own block is not scored, because the query always attends to it. If causal, only blocks before the query's own
are scored, so that a later token changes no earlier selection.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.lsh import bucket_chunks, chunk_rows
from attention_core.ops.random import normal
from attention_core.ops.softmax.partial import Part, partial_attention

CHOICES = 2**13
"""Pairs of a query and a chosen block that are computed in one step, for each head."""
STEP = 2**15
"""Pairs of query and key that are computed in one step, over all heads."""
MEAN, SECOND, BOUND, INDEXER, MASS = SCORES = ("mean key", "second order", "bound", "random indexer", "true mass")
Score = Callable[[Tensor, int], Tensor]
"""``q [..., rows, d], b -> [..., rows, b]``, the scores of the first b blocks."""


def block_count(n: int, block: int) -> int:
    """Return the number of blocks that n tokens fill; the last may be short."""
    return -(-n // block)


def cut(x: Tensor, block: int) -> Tensor:
    """Cut the tokens into blocks, ``[..., blocks, block, d]``, padded with zeros."""
    return F.pad(x, (0, 0, 0, -x.shape[-2] % block)).unflatten(-2, (-1, block))


def filled(n: int, block: int, device: torch.device) -> Tensor:
    """Return which positions in the blocks hold a token, ``bool [blocks, block]``."""
    return (torch.arange(block_count(n, block) * block, device=device) < n).unflatten(0, (-1, block))


def scorer(k: Tensor, *, block: int, score: str, rank: int, seed: int) -> Score:
    """Return the function by which queries score blocks of keys; all scores use q divided by √d.

    ``mean key`` is q·k̄. ``second order`` is q·k̄ + ½ qᵀΣq, the second-order expansion of the logarithm of the mean of
    exp(q·k). ``bound`` is Σ_c max(q_c max k_c, q_c min k_c), an upper bound of q·k in the block. ``random indexer`` is
    the largest q·k of the block after a random projection to ``rank`` numbers. ``true mass`` is log Σ exp(q·k).

    Args:
        k: ``[..., n, d]``, float32 or float64.
        block: tokens in a block.
        score: one of ``SCORES``.
        rank: the rank of the random indexer.
        seed: the seed of the random indexer.
    """
    scale, held, keys = k.shape[-1] ** -0.5, filled(k.shape[-2], block, k.device), cut(k, block)
    if score == BOUND:
        empty = ~held.unsqueeze(-1)
        ends = keys.masked_fill(empty, -math.inf).amax(-2), keys.masked_fill(empty, math.inf).amin(-2)
        both = scale * torch.cat(ends, -1)  # [..., blocks, 2d]
        return lambda q, b: torch.cat((q.clamp(min=0), q.clamp(max=0)), -1) @ both[..., :b, :].mT
    if score == INDEXER:
        into = normal((k.shape[-1], rank), seed, k) / rank**0.5
        short = scale * (keys @ into)  # [..., blocks, block, rank]
        return lambda q, b: _key_scores(q @ into, short, held, b).amax(-1)
    if score == MASS:
        return lambda q, b: _key_scores(q, scale * keys, held, b).logsumexp(-1)
    count = held.sum(-1, keepdim=True)
    mean = scale * keys.sum(-2) / count  # [..., blocks, d]
    if score == MEAN:
        return lambda q, b: q @ mean[..., :b, :].mT
    spread = (scale * keys - mean.unsqueeze(-2)) * (held / count.sqrt()).to(k).unsqueeze(-1)
    # The second-order term of a score is qᵀ Σ q / 2 with the covariance Σ = CᵀC of a block's keys, where C is
    # ``spread``. Since CᵀC = RᵀR for C = QR, the smaller R replaces C if a block has more keys than dimensions.
    factor = spread if block <= k.shape[-1] else torch.linalg.qr(spread, mode="r").R

    def second(q: Tensor, b: int) -> Tensor:
        along = (q @ factor[..., :b, :, :].flatten(-3, -2).mT).unflatten(-1, (b, -1))
        return q @ mean[..., :b, :].mT + along.square().sum(-1) / 2

    return second


def _key_scores(q: Tensor, keys: Tensor, held: Tensor, b: int) -> Tensor:
    """Compute ``q·k`` of every key of the first b blocks, ``[..., rows, b, block]``; ``-inf`` for padding."""
    some = keys[..., :b, :, :].flatten(-3, -2)
    return (q @ some.mT).unflatten(-1, (b, -1)).masked_fill_(~held[:b], -math.inf)


def best(scores: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Return the m largest entries of the last axis, descending, and their indices; finite ties keep their order."""
    if m < scores.shape[-1] and not scores.is_meta:  # meta tensors have no ties
        values, index = scores.topk(m + 1)
        last, next_ = values[..., m - 1], values[..., m]
        if not ((last == next_) & (last > -math.inf)).any():
            index, order = index[..., :m].sort(dim=-1)
            values, order = values[..., :m].gather(-1, order).sort(dim=-1, descending=True, stable=True)
            return values, index.gather(-1, order)
    ranked = scores.sort(dim=-1, descending=True, stable=True)
    return ranked.values[..., :m], ranked.indices[..., :m]


def others(rows: slice, place: Tensor, *, block: int, causal: bool) -> Tensor:
    """Return which blocks each query may choose, ``bool [rows, blocks]``: not its own; if causal, only earlier ones."""
    own = torch.arange(rows.start, rows.stop, device=place.device)[:, None] // block
    return place < own if causal else place != own


def as_mask(index: Tensor, found: Tensor, *, blocks: int) -> Tensor:
    """Convert the result of ``Selection.choose`` to a mask of blocks, ``bool [..., n, blocks]``."""
    mask = torch.zeros(*index.shape[:-1], blocks, dtype=torch.bool, device=index.device)
    return mask.scatter_(-1, index, found)


def stretches(n: int, m: int) -> list[slice]:
    """Return the consecutive queries that are computed together in each step of attention to m chosen blocks."""
    rows = max(1, CHOICES // m)
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def chosen_parts(q: Tensor, k: Tensor, v: Tensor, n: int, index: Tensor, found: Tensor) -> list[Part]:
    """Compute attention to the chosen blocks: one part for the best block of each query, one for the second best, ...

    Queries that chose the same block are collected in tiles of as many queries as a block has keys, so that keys are
    copied once for each tile, not for each query.

    Args:
        q: ``[..., rows, d]``, some queries.
        k: ``[..., blocks, block, d]``, all keys, from ``cut``.
        v: ``[..., blocks, block, d_v]``, all values, from ``cut``.
        n: number of tokens in the blocks.
        index: ``int64 [..., rows, m]``, m >= 1, from ``Selection.choose``.
        found: ``bool [..., rows, m]``, from ``Selection.choose``.
    """
    (rows, m), (blocks, block) = index.shape[-2:], k.shape[-3:-1]
    bucket = index.reshape(-1, rows * m)
    heads = torch.arange(len(bucket), device=q.device)[:, None]
    tiles = bucket_chunks(bucket, blocks, block)
    slot = (tiles.slot + heads * (tiles.rows * tiles.size)).flatten()
    query_of_slot = slot.new_zeros(len(heads) * tiles.rows * tiles.size)  # the query in each slot of the tiles
    query_of_slot[slot] = (heads * rows + torch.arange(rows * m, device=q.device) // m).flatten()
    block_of_tile = slot.new_zeros(len(heads) * tiles.rows)  # the block of each tile
    block_of_tile[slot // tiles.size] = (heads * blocks + bucket).flatten()
    size = tiles.size
    del tiles, bucket
    queries = q.reshape(-1, q.shape[-1])
    keys, values = (x.reshape(-1, 1, block, x.shape[-1]) for x in (k, v))
    held, step = filled(n, block, q.device), max(1, STEP // block**2)

    def mask(at: Tensor) -> Tensor | None:
        return held[at % blocks][:, None, None].expand(-1, 1, size, -1) if n % block else None

    parts = (
        partial_attention(
            queries.index_select(0, some).reshape(len(at), 1, -1, q.shape[-1]),
            keys.index_select(0, at),
            values.index_select(0, at),
            mask=mask(at),
        )
        for some, at in zip(query_of_slot.split(step * size), block_of_tile.split(step), strict=True)
    )
    out, lse = (torch.cat(x).flatten(0, 2).index_select(0, slot) for x in zip(*parts, strict=True))
    lse = lse.reshape(index.shape).masked_fill(~found, torch.finfo(lse.dtype).min)
    return list(zip(out.reshape(*index.shape, -1).unbind(-2), lse.split(1, -1), strict=True))


def chosen_multiply_adds(n: int, d: int, m: int, *, block: int) -> int:
    """Count the multiply-adds of ``chosen_parts`` over all ``stretches`` for one head."""
    pairs = [(rows.stop - rows.start) * m for rows in stretches(n, m)]
    return 2 * d * block * sum(tile_places(pair, n, block) for pair in pairs)


def tile_places(choices: int, n: int, block: int) -> int:
    """Return the number of slots in the tiles of this many pairs of a query and a chosen block."""
    size = min(block, choices)
    return chunk_rows(choices, block_count(n, block), size) * size


def chosen_elements(n: int, d: int, m: int, *, block: int) -> int:
    """Return the peak number of elements of ``chosen_parts`` for one head, in a step or when it joins outputs."""
    choices = m * min(n, max(1, CHOICES // m))
    places = tile_places(choices, n, block)
    at_once = min(places, max(1, STEP // block**2) * min(block, choices))
    keys = at_once * block // min(block, choices)
    tiles = at_once * (2 * d + 1) + 2 * keys * d + (at_once * block if n % block else 0)
    outs = places * (d + 1)
    copies = 2 * block_count(n, block) * block * d if n % block else 0
    return (
        copies
        + 2 * choices
        + 2 * places
        + max(outs - at_once * (d + 1) + tiles, 2 * outs + choices * d + 2 * at_once * d)
    )
