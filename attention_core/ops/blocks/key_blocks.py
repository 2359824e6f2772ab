"""Blocks of consecutive keys: a query's scores for the blocks, and attention to the blocks chosen for the query.

A query's own block is not scored, because the query always attends to it. If causal, only blocks before the query's
own are scored, so that a later token changes no earlier selection.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.lsh import bucket_chunks, max_chunks
from attention_core.ops.random import normal
from attention_core.ops.softmax.partial import Part, partial_attention

CHOICES_PER_STEP = 2**13
"""Pairs of a query and a chosen block that are computed in one step, for each head."""
PAIRS_PER_STEP = 2**15
"""Pairs of query and key that are computed in one step, over all heads."""
MEAN, SECOND, BOUND, INDEXER, MASS = SCORES = ("mean key", "second order", "bound", "random indexer", "true mass")
BlockScore = Callable[[Tensor, int], Tensor]
"""``q [..., rows, d], b -> [..., rows, b]``, the scores of the first b blocks."""


def block_count(n: int, block: int) -> int:
    """Return the number of blocks that n tokens fill; the last may be short."""
    return -(-n // block)


def split_blocks(x: Tensor, block: int) -> Tensor:
    """Cut the tokens into blocks, ``[..., blocks, block, d]``, padded with zeros."""
    return F.pad(x, (0, 0, 0, -x.shape[-2] % block)).unflatten(-2, (-1, block))


def is_filled(n: int, block: int, device: torch.device) -> Tensor:
    """Return which positions in the blocks hold a token, ``bool [blocks, block]``."""
    return (torch.arange(block_count(n, block) * block, device=device) < n).unflatten(0, (-1, block))


def block_scorer(k: Tensor, *, block: int, score: str, rank: int, seed: int) -> BlockScore:
    """Return the function that computes the scores of queries for blocks of keys.

    In the scores, q is divided by √d, and k̄ and Σ are the mean and the covariance of a block's keys. ``mean key`` is
    q·k̄. ``second order`` is q·k̄ + ½ qᵀΣq, the second-order expansion of the logarithm of the mean of exp(q·k).
    ``bound`` is Σ_c max(q_c max k_c, q_c min k_c) over the entries c, an upper bound of q·k in the block. ``random
    indexer`` is the largest q·k of the block after a random projection to ``rank`` dimensions. ``true mass`` is
    log Σ exp(q·k).

    Args:
        k: ``[..., n, d]``, float32 or float64.
        block: tokens in a block.
        score: one of ``SCORES``.
        rank: the dimensions of the random projection.
        seed: the seed of the random projection.
    """
    scale, is_token, keys = k.shape[-1] ** -0.5, is_filled(k.shape[-2], block, k.device), split_blocks(k, block)
    if score == BOUND:
        empty = ~is_token.unsqueeze(-1)
        extremes = keys.masked_fill(empty, -math.inf).amax(-2), keys.masked_fill(empty, math.inf).amin(-2)
        bounds = scale * torch.cat(extremes, -1)  # [..., blocks, 2d]
        return lambda q, b: torch.cat((q.clamp(min=0), q.clamp(max=0)), -1) @ bounds[..., :b, :].mT
    if score == INDEXER:
        projection = normal((k.shape[-1], rank), seed, k) / rank**0.5
        projected_keys = scale * (keys @ projection)  # [..., blocks, block, rank]
        return lambda q, b: _key_scores(q @ projection, projected_keys, is_token, b).amax(-1)
    if score == MASS:
        return lambda q, b: _key_scores(q, scale * keys, is_token, b).logsumexp(-1)
    count = is_token.sum(-1, keepdim=True)
    mean = scale * keys.sum(-2) / count  # [..., blocks, d]
    if score == MEAN:
        return lambda q, b: q @ mean[..., :b, :].mT
    centred_keys = (scale * keys - mean.unsqueeze(-2)) * (is_token / count.sqrt()).to(k).unsqueeze(-1)
    # The second term of the score ``second order`` of a block is qᵀ Σ q / 2 = ‖C q‖² / 2. Here, Σ = CᵀC is the
    # covariance of the block's keys, and C is ``centred_keys``. Since CᵀC = RᵀR for C = QR, the smaller R replaces C if
    # a block has more keys than dimensions.
    factor = centred_keys if block <= k.shape[-1] else torch.linalg.qr(centred_keys, mode="r").R

    def second_order(q: Tensor, b: int) -> Tensor:
        deviations = (q @ factor[..., :b, :, :].flatten(-3, -2).mT).unflatten(-1, (b, -1))
        return q @ mean[..., :b, :].mT + deviations.square().sum(-1) / 2

    return second_order


def _key_scores(q: Tensor, keys: Tensor, is_token: Tensor, n_blocks: int) -> Tensor:
    """Compute ``q·k`` for every key of the first blocks, ``[..., rows, n_blocks, block]``; ``-inf`` for padding."""
    flat_keys = keys[..., :n_blocks, :, :].flatten(-3, -2)
    return (q @ flat_keys.mT).unflatten(-1, (n_blocks, -1)).masked_fill_(~is_token[:n_blocks], -math.inf)


def top_blocks(scores: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Return the m largest entries of the last axis, descending, and their indices.

    Equal finite entries keep their order.
    """
    if m < scores.shape[-1] and not scores.is_meta:  # meta tensors have no numbers to compare
        values, index = scores.topk(m + 1)
        last_value, next_value = values[..., m - 1], values[..., m]
        if not ((last_value == next_value) & (last_value > -math.inf)).any():
            index, order = index[..., :m].sort(dim=-1)
            values, order = values[..., :m].gather(-1, order).sort(dim=-1, descending=True, stable=True)
            return values, index.gather(-1, order)
    ranked = scores.sort(dim=-1, descending=True, stable=True)
    return ranked.values[..., :m], ranked.indices[..., :m]


def selectable_blocks(rows: slice, index: Tensor, *, block: int, causal: bool) -> Tensor:
    """Return which of the blocks ``index`` each query may choose, ``bool [rows, blocks]``.

    A query may not choose its own block; if causal, it may choose only earlier ones.
    """
    own_block = torch.arange(rows.start, rows.stop, device=index.device)[:, None] // block
    return index < own_block if causal else index != own_block


def block_mask(index: Tensor, is_valid: Tensor, *, blocks: int) -> Tensor:
    """Return which blocks each query chose, ``bool [..., n, blocks]``, from the result of ``Selection.select``."""
    mask = torch.zeros(*index.shape[:-1], blocks, dtype=torch.bool, device=index.device)
    return mask.scatter_(-1, index, is_valid)


def query_slices(n: int, m: int) -> list[slice]:
    """Return slices of consecutive queries, one for each step of attention to m chosen blocks."""
    rows = max(1, CHOICES_PER_STEP // m)
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def selected_block_parts(q: Tensor, k: Tensor, v: Tensor, n: int, index: Tensor, is_valid: Tensor) -> list[Part]:
    """Compute attention to the chosen blocks: one part for the best block of each query, one for the second best, ...

    Queries that chose the same block are collected in tiles. A tile belongs to one block of keys and has slots, at most
    as many as a block has keys. Each slot holds one query or stays empty. So keys are copied once for each tile, not
    for each query.

    Args:
        q: ``[..., rows, d]``, some queries.
        k: ``[..., blocks, block, d]``, all keys, from ``split_blocks``.
        v: ``[..., blocks, block, d_v]``, all values, from ``split_blocks``.
        n: number of tokens in the blocks.
        index: ``int64 [..., rows, m]``, m >= 1, from ``Selection.select``.
        is_valid: ``bool [..., rows, m]``, from ``Selection.select``.
    """
    (rows, m), (blocks, block) = index.shape[-2:], k.shape[-3:-1]
    choices = index.reshape(-1, rows * m)
    heads = torch.arange(len(choices), device=q.device)[:, None]
    tiles = bucket_chunks(choices, blocks, block)  # each chunk is a tile
    slot = (tiles.slot + heads * (tiles.n_chunks * tiles.size)).flatten()
    query_of_slot = slot.new_zeros(len(heads) * tiles.n_chunks * tiles.size)  # index of the query in a slot
    query_of_slot[slot] = (heads * rows + torch.arange(rows * m, device=q.device) // m).flatten()
    block_of_tile = slot.new_zeros(len(heads) * tiles.n_chunks)  # for each tile, the index of its key block
    block_of_tile[slot // tiles.size] = (heads * blocks + choices).flatten()
    size = tiles.size
    del tiles, choices
    queries = q.reshape(-1, q.shape[-1])
    keys, values = (x.reshape(-1, 1, block, x.shape[-1]) for x in (k, v))
    is_token = is_filled(n, block, q.device)
    step = step_size(max(1, PAIRS_PER_STEP // block**2), q.device, numbers=block**2)

    def mask(block_index: Tensor) -> Tensor | None:
        return is_token[block_index % blocks][:, None, None].expand(-1, 1, size, -1) if n % block else None

    parts = (
        partial_attention(
            queries.index_select(0, query_index).reshape(len(block_index), 1, -1, q.shape[-1]),
            keys.index_select(0, block_index),
            values.index_select(0, block_index),
            mask=mask(block_index),
        )
        for query_index, block_index in zip(query_of_slot.split(step * size), block_of_tile.split(step), strict=True)
    )
    out, lse = (torch.cat(x).flatten(0, 2).index_select(0, slot) for x in zip(*parts, strict=True))
    lse = lse.reshape(index.shape).masked_fill(~is_valid, torch.finfo(lse.dtype).min)
    return list(zip(out.reshape(*index.shape, -1).unbind(-2), lse.split(1, -1), strict=True))


def selected_multiply_adds(n: int, d: int, m: int, *, block: int) -> int:
    """Count the multiply-adds of ``selected_block_parts`` over all ``query_slices`` for one head."""
    pairs = [(rows.stop - rows.start) * m for rows in query_slices(n, m)]
    return 2 * d * block * sum(tile_slots(pair, n, block) for pair in pairs)


def tile_slots(choices: int, n: int, block: int) -> int:
    """Return the most slots that ``selected_block_parts`` needs for ``choices`` pairs of a query and a chosen block."""
    size = min(block, choices)
    return max_chunks(choices, block_count(n, block), size) * size


def selected_elements(n: int, d: int, m: int, *, block: int) -> int:
    """Return the peak number of elements that ``selected_block_parts`` holds for one head."""
    choices = m * min(n, max(1, CHOICES_PER_STEP // m))
    slots = tile_slots(choices, n, block)
    slots_per_step = min(slots, max(1, PAIRS_PER_STEP // block**2) * min(block, choices))
    keys = slots_per_step * block // min(block, choices)
    tiles = slots_per_step * (2 * d + 1) + 2 * keys * d + (slots_per_step * block if n % block else 0)
    outs = slots * (d + 1)
    padded_copies = 2 * block_count(n, block) * block * d if n % block else 0
    return (
        padded_copies
        + 2 * choices
        + 2 * slots
        + max(outs - slots_per_step * (d + 1) + tiles, 2 * outs + choices * d + 2 * slots_per_step * d)
    )
