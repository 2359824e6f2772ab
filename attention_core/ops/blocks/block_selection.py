"""Softmax over each query's own block of keys and the few other blocks with the highest scores."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.ops.blocks import key_blocks
from attention_core.ops.blocks.key_blocks import block_count, chosen_elements, chosen_multiply_adds, chosen_parts
from attention_core.ops.pattern.parts import own_block
from attention_core.ops.pattern.pieces import block_pairs
from attention_core.ops.softmax.blockwise import pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.partial import merged


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A rule that chooses blocks of keys for each query.

    Attributes:
        block: tokens in a block, counted from the first.
        number: how many blocks each query attends to in addition to its own.
        score: the score that ranks the blocks, one of ``key_blocks.SCORES``.
        rank: the rank of the random indexer.
        seed: the seed of the random indexer.
    """

    block: int
    number: int
    score: str = key_blocks.MEAN
    rank: int = 1
    seed: int = 0

    def choose(self, q: Tensor, k: Tensor, *, causal: bool, score: str = "") -> tuple[Tensor, Tensor]:
        """Return each query's chosen blocks and which of them are valid; see ``key_blocks.choose``."""
        return key_blocks.choose(
            q,
            k,
            block=self.block,
            number=self.number,
            causal=causal,
            score=score or self.score,
            rank=self.rank,
            seed=self.seed,
        )

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
        scoring = key_blocks.scoring_multiply_adds(
            n, d, self.number, block=self.block, causal=causal, score=self.score, rank=self.rank
        )
        scored = key_blocks.scoring_elements(n, d, block=self.block, score=self.score, rank=self.rank)
        chosen = chosen_elements(n, d, self.number, block=self.block)
        attending = chosen_multiply_adds(n, d, self.number, block=self.block)
        return own + scoring + attending, n * (d + 1) + 9 * n * self.number // 4 + max(scored, chosen)
