"""Softmax attention of each query to its own block of keys and to the few other blocks with the highest scores."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.ops.blocks import key_blocks
from attention_core.ops.blocks.key_blocks import (
    BOUND,
    INDEXER,
    MASS,
    MEAN,
    SECOND,
    block_count,
    selected_block_parts,
    selected_elements,
    selected_multiply_adds,
)
from attention_core.ops.pattern.parts import own_block_attention
from attention_core.ops.pattern.pieces import block_pairs
from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.ops.softmax.partial import merge_partial_softmax

ROWS = 256
"""Queries scored in one step; a quarter of these for scores that hold several numbers per query and block."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A rule that chooses blocks of keys for each query.

    Attributes:
        block: tokens in a block; the first block starts at the first token.
        count: how many blocks each query attends to in addition to its own.
        score: the score that ranks the blocks, one of ``key_blocks.SCORES``.
        rank: the number of dimensions to which the score ``random indexer`` projects queries and keys.
        seed: the seed of this random projection.
    """

    block: int
    count: int
    score: str = MEAN
    rank: int = 1
    seed: int = 0

    @torch.no_grad()
    def select(self, q: Tensor, k: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
        """Choose the blocks that each query attends to in addition to its own, best first; on a tie the earlier block.

        If causal, only blocks before the query's own are chosen.

        Returns:
            The indices of blocks, ``int64 [..., n, m]`` with ``m = min(count, blocks - 1)``, and which of them are
            valid, ``bool [..., n, m]``, since a causal query may have fewer earlier blocks.
        """
        q, k = at_least_float32(q), at_least_float32(k)
        # The first key is subtracted from all keys, because a large common part of the keys would cause rounding
        # errors. This changes all scores of a query by the same number, so it does not change the choice.
        k = k - k[..., :1, :]
        n, block = q.shape[-2], self.block
        block_index = torch.arange(block_count(n, block), device=q.device)
        m = min(self.count, len(block_index) - 1)
        index = torch.empty(*q.shape[:-1], m, dtype=torch.int64, device=q.device)
        is_valid = torch.empty_like(index, dtype=torch.bool)
        if m == 0:
            return index, is_valid
        score_of = key_blocks.block_scorer(k, block=block, score=self.score, rank=self.rank, seed=self.seed)
        for rows, b in self._steps(n, m, causal=causal):
            scores = score_of(q[..., rows, :], b)
            # ``masked`` is the range of blocks that some queries of this step may not choose. Blocks outside it need no
            # mask, because all queries of the step may choose them.
            masked = slice(rows.start // block, b if causal else (rows.stop - 1) // block + 1)
            selectable = key_blocks.selectable_blocks(rows, block_index[masked], block=block, causal=causal)
            scores[..., masked].masked_fill_(selectable.logical_not_(), -math.inf)
            values, index[..., rows, :] = key_blocks.top_blocks(scores, m)
            is_valid[..., rows, :] = values > -math.inf
            del scores, selectable  # free their memory before the next step
        return index, is_valid

    @property
    def _rows(self) -> int:
        """The number of queries scored in one step."""
        return ROWS if self.score in (MEAN, BOUND) else ROWS // 4

    def _steps(self, n: int, m: int, *, causal: bool) -> Iterator[tuple[slice, int]]:
        """Yield, for each step, its queries and the number b of first blocks that these queries score.

        If causal, b counts the blocks before the block of the step's last query, but is at least m. Otherwise, b counts
        all blocks.
        """
        for start in range(0, n, self._rows):
            stop = min(start + self._rows, n)
            yield slice(start, stop), max((stop - 1) // self.block, m) if causal else block_count(n, self.block)

    def primitives(self, q: Tensor, k: Tensor, *, causal: bool) -> dict[str, Tensor]:
        """Return the masks of pairs in the same block and in a chosen block, ``bool [..., n, n]``, by name."""
        n = q.shape[-2]
        block_index = torch.arange(n, device=q.device) // self.block
        own_block = block_index[:, None] == block_index
        selected = key_blocks.block_mask(*self.select(q, k, causal=causal), blocks=block_count(n, self.block))
        chosen = selected.repeat_interleave(self.block, -1)[..., :n]
        return {"block": own_block.tril() if causal else own_block, "chosen": chosen}

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
        """Return attention to each query's own block and the blocks chosen for it, ``[..., n, d_v]``.

        With m chosen blocks of b tokens, it takes O(n (m + 1) b d) time, in addition to the scores, and O(n (m + d))
        memory.
        """
        if self.count >= block_count(q.shape[-2], self.block) - 1:
            return exact_attention(q, k, v, causal=causal)
        own_block = own_block_attention(q, k, v, block=self.block, causal=causal)
        if self.count == 0:
            return own_block[0]
        index, is_valid = self.select(q, k, causal=causal)
        keys, values = key_blocks.split_blocks(k, self.block), key_blocks.split_blocks(v, self.block)
        outs = []
        for rows in key_blocks.query_slices(q.shape[-2], self.count):
            queries, out, lse, *selected = (x[..., rows, :] for x in (q, *own_block, index, is_valid))
            parts = selected_block_parts(queries, keys, values, q.shape[-2], *selected)
            outs.append(merge_partial_softmax([(out, lse), *parts]))
        return outs[0] if len(outs) == 1 else torch.cat(outs, -2)

    def cost(self, n: int, d: int, *, causal: bool) -> tuple[int, int]:
        """Return the multiply-adds of attention and scores, and the peak number of elements in memory, for one head."""
        if self.count >= block_count(n, self.block) - 1:
            return 2 * d * n_pairs(n, causal=causal), n * (d + 1)
        own_adds = 2 * d * block_pairs(n, self.block, causal=causal)
        if self.count == 0:
            return own_adds, n * (d + 2) + (n * (d + 1) if n % self.block else 0)
        peak_of_selected = selected_elements(n, d, self.count, block=self.block)
        selected_adds = selected_multiply_adds(n, d, self.count, block=self.block)
        peak = n * (d + 1) + 9 * n * self.count // 4 + max(self._scoring_elements(n, d), peak_of_selected)
        return own_adds + self._scoring_multiply_adds(n, d, causal=causal) + selected_adds, peak

    def _scoring_multiply_adds(self, n: int, d: int, *, causal: bool) -> int:
        block, rank = self.block, self.rank
        scored_pairs = sum((rows.stop - rows.start) * b for rows, b in self._steps(n, self.count, causal=causal))
        adds_per_pair = {MEAN: d, SECOND: d * (1 + min(block, d)), BOUND: 2 * d, INDEXER: block * rank, MASS: block * d}
        projected = (n + block_count(n, block) * block) * d * rank if self.score == INDEXER else 0
        return scored_pairs * adds_per_pair[self.score] + projected

    def _scoring_elements(self, n: int, d: int) -> int:
        """Return the peak number of elements that ``select`` needs for one head, without the indices it returns."""
        block, blocks, rows = self.block, block_count(n, self.block), min(self._rows, n)
        size = blocks * block
        summary = {
            MEAN: blocks * d,
            SECOND: blocks * (d + min(block, d) * d),
            BOUND: 2 * blocks * d,
            INDEXER: size * self.rank,
            MASS: size * d,
        }
        step = {SECOND: 2 * min(block, d) * rows * blocks, INDEXER: rows * size, MASS: 2 * rows * size}
        scores = rows * blocks + rows * min(blocks, rows // block + 1) // 4
        return summary[self.score] + max(step.get(self.score, 0), scores)
