"""Softmax over each query's own block of keys and the few other blocks with the highest scores."""

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
    chosen_elements,
    chosen_multiply_adds,
    chosen_parts,
)
from attention_core.ops.pattern.parts import own_block
from attention_core.ops.pattern.pieces import block_pairs
from attention_core.ops.softmax.blockwise import pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.ops.softmax.partial import merged

ROWS = 256
"""Queries scored in one step; a quarter of these where the score needs every key or direction of a block."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A rule that chooses blocks of keys for each query.

    Attributes:
        block: tokens in a block; the first block starts at the first token.
        number: how many blocks each query attends to in addition to its own.
        score: the score that ranks the blocks, one of ``key_blocks.SCORES``.
        rank: the rank of the random indexer.
        seed: the seed of the random indexer.
    """

    block: int
    number: int
    score: str = MEAN
    rank: int = 1
    seed: int = 0

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
        """Choose the blocks that each query attends to in addition to its own, best first; on a tie the earlier block.

        If causal, only blocks before the query's own are chosen.

        Returns:
            The indices of blocks, ``int64 [..., n, m]`` with ``m = min(number, blocks - 1)``, and which of them are
            valid, ``bool [..., n, m]``, since a causal query may have fewer earlier blocks.
        """
        q, k = at_least_float32(q), at_least_float32(k)
        # The first key is subtracted from all keys, because a large common part of the keys would cause rounding
        # errors. This changes all scores of a query by the same number, so it does not change the choice.
        k = k - k[..., :1, :]
        n, block = q.shape[-2], self.block
        place = torch.arange(block_count(n, block), device=q.device)
        m = min(self.number, len(place) - 1)
        index = torch.empty(*q.shape[:-1], m, dtype=torch.int64, device=q.device)
        found = torch.empty_like(index, dtype=torch.bool)
        if m == 0:
            return index, found
        score_of = key_blocks.scorer(k, block=block, score=self.score, rank=self.rank, seed=self.seed)
        for rows, b in self._steps(n, m, causal=causal):
            scores = score_of(q[..., rows, :], b)
            # Blocks before ``near`` may be chosen by all queries of this step; only the blocks in ``near`` need a mask.
            near = slice(rows.start // block, b if causal else (rows.stop - 1) // block + 1)
            hidden = key_blocks.others(rows, place[near], block=block, causal=causal).logical_not_()
            scores[..., near].masked_fill_(hidden, -math.inf)
            values, index[..., rows, :] = key_blocks.best(scores, m)
            found[..., rows, :] = values > -math.inf
            del scores, hidden  # free their memory before the next step
        return index, found

    @property
    def _rows(self) -> int:
        """The number of queries scored in one step."""
        return ROWS if self.score in (MEAN, BOUND) else ROWS // 4

    def _steps(self, n: int, m: int, *, causal: bool) -> Iterator[tuple[slice, int]]:
        """Yield each step's queries and how many blocks they score: all, or if causal the earlier ones, at least m."""
        for start in range(0, n, self._rows):
            stop = min(start + self._rows, n)
            yield slice(start, stop), max((stop - 1) // self.block, m) if causal else block_count(n, self.block)

    def primitives(self, q: Tensor, k: Tensor, *, causal: bool) -> dict[str, Tensor]:
        """Return the pairs within a block, and the pairs of a query with its chosen blocks, ``bool [..., n, n]``."""
        n = q.shape[-2]
        place = torch.arange(n, device=q.device) // self.block
        own = place[:, None] == place
        chosen = key_blocks.as_mask(*self.choose(q, k, causal=causal), blocks=block_count(n, self.block))
        return {"block": own.tril() if causal else own, "chosen": chosen.repeat_interleave(self.block, -1)[..., :n]}

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
        """Merge attention to own and to chosen blocks: O(n (m + 1) b d) time plus the scores, O(n (m + d)) memory."""
        if self.number >= block_count(q.shape[-2], self.block) - 1:
            return exact_attention(q, k, v, causal=causal)
        own = own_block(q, k, v, block=self.block, causal=causal)
        if self.number == 0:
            return own[0]
        index, found = self.choose(q, k, causal=causal)
        keys, values = key_blocks.cut(k, self.block), key_blocks.cut(v, self.block)
        outs = []
        for rows in key_blocks.stretches(q.shape[-2], self.number):
            some, *rest = (x[..., rows, :] for x in (q, *own, index, found))
            out, lse, *chosen = rest
            outs.append(merged([(out, lse), *chosen_parts(some, keys, values, q.shape[-2], *chosen)]))
        return outs[0] if len(outs) == 1 else torch.cat(outs, -2)

    def cost(self, n: int, d: int, *, causal: bool) -> tuple[int, int]:
        """Count the multiply-adds of two products over all chosen blocks and of the scores, and the peak elements."""
        if self.number >= block_count(n, self.block) - 1:
            return 2 * d * pairs(n, causal=causal), n * (d + 1)
        own = 2 * d * block_pairs(n, self.block, causal=causal)
        if self.number == 0:
            return own, n * (d + 2) + (n * (d + 1) if n % self.block else 0)
        chosen = chosen_elements(n, d, self.number, block=self.block)
        attending = chosen_multiply_adds(n, d, self.number, block=self.block)
        peak = n * (d + 1) + 9 * n * self.number // 4 + max(self._scoring_elements(n, d), chosen)
        return own + self._scoring_multiply_adds(n, d, causal=causal) + attending, peak

    def _scoring_multiply_adds(self, n: int, d: int, *, causal: bool) -> int:
        block, rank = self.block, self.rank
        scored = sum((rows.stop - rows.start) * b for rows, b in self._steps(n, self.number, causal=causal))
        each = {MEAN: d, SECOND: d * (1 + min(block, d)), BOUND: 2 * d, INDEXER: block * rank, MASS: block * d}
        projected = (n + block_count(n, block) * block) * d * rank if self.score == INDEXER else 0
        return scored * each[self.score] + projected

    def _scoring_elements(self, n: int, d: int) -> int:
        """Return the peak number of elements that ``choose`` needs for one head, without its result."""
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
