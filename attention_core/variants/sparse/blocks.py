"""Block selection: each query attends to its own block of keys and to the m other blocks that have the highest scores.

A score estimates the softmax mass of a block: the sum of its keys' weights in full attention. The score "true mass" is
that mass itself. Every score depends on all keys of the block. If causal, a query therefore scores only the blocks
before its own, and attends to the keys of its own block up to itself. The last block, which may be short, is then never
scored.
"""

from dataclasses import replace

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.blocks import key_blocks
from attention_core.ops.blocks.block_selection import Selection
from attention_core.ops.blocks.key_blocks import block_count
from attention_core.ops.pattern.primitives import pattern_from_primitives
from attention_core.ops.softmax.masked import (
    at_least_float32,
    masked_softmax,
    positions,
    scores,
    top_k_mask,
    visible_pairs,
)
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class BlocksParams(Params):
    """Settings of block selection."""

    block: int = param(
        8,
        low=1,
        high=1024,
        scale="log",
        help="Number b of tokens per block. The first block starts at the first token.",
    )
    blocks: int = param(
        2,
        low=0,
        high=256,
        budget=True,
        help="Number m of blocks selected in addition to the query's own block. If "
        "all blocks are selected, the result is softmax attention.",
    )
    score: str = param(
        key_blocks.MEAN,
        choices=key_blocks.SCORES,
        help='Score of a block for a query q. "mean key" is q·k̄, where k̄ is the mean of the block\'s keys (as in '
        'MoBA). "second order" is q·k̄ + ½ qᵀΣq, where Σ is the covariance of these keys. "bound" is a number that no '
        'q·k in the block exceeds (as in Quest). "random indexer" is the largest q·k in the block after a random '
        "projection (similar to the published method DSA, which trains the projection and selects single tokens). "
        '"true mass" is the softmax weight of the whole block.',
    )
    rank: int = param(
        4,
        low=1,
        high=64,
        scale="log",
        help="Number of dimensions to which queries and keys are projected at random before the blocks are scored. "
        'Used only with the score "random indexer".',
    )
    seed: int = param(
        0,
        low=0,
        high=9999,
        help="Random seed of the projection with which the blocks are scored. "
        'Used only with the score "random indexer".',
    )


def selection(p: BlocksParams) -> Selection:
    """Return the rule that chooses blocks."""
    return Selection(block=p.block, count=p.blocks, score=p.score, rank=p.rank, seed=p.seed)


def primitives(q: Tensor, k: Tensor, p: BlocksParams, *, causal: bool) -> dict[str, Tensor]:
    """Return two masks by name: pairs within a block, and queries with keys of chosen blocks, ``bool [..., n, n]``."""
    return selection(p).primitives(q, k, causal=causal)


pattern = pattern_from_primitives(primitives)


def weights(q: Tensor, k: Tensor, p: BlocksParams, *, causal: bool) -> Tensor:
    """Compute softmax over each query's own block and its chosen blocks, ``[..., n, n]``."""
    return masked_softmax(scores(q, k), pattern(q, k, p, causal=causal))


def definition(q: Tensor, k: Tensor, v: Tensor, p: BlocksParams, *, causal: bool) -> Tensor:
    """Compute attention to each query's own block and to the m other blocks that score best, ``[..., n, d_v]``."""
    i, j = positions(q.shape[-2], q.device)
    block = j[:, :: p.block] // p.block  # [1, blocks]
    score_of = key_blocks.block_scorer(k, block=p.block, score=p.score, rank=p.rank, seed=p.seed)
    others = block < i // p.block if causal else block != i // p.block  # [n, blocks]
    score = score_of(q, block.shape[-1]).masked_fill(~others, -torch.inf)  # [..., n, blocks]
    chosen = top_k_mask(score, p.blocks) & others
    allowed = (i // p.block == j // p.block) | chosen[..., j[0] // p.block]  # [..., n, n]
    return masked_softmax(scores(q, k), allowed & (j <= i) if causal else allowed) @ v


def attend(q: Tensor, k: Tensor, v: Tensor, p: BlocksParams, *, causal: bool) -> Tensor:
    """Compute the output without the matrix.

    With m chosen blocks of b tokens, it takes O(n (m + 1) b d) time without the scores, and O(n (m + d)) memory.
    """
    return selection(p).attend(q, k, v, causal=causal)


def cost(n: int, d: int, p: BlocksParams, *, causal: bool) -> Cost:
    """Return the cost of the selection and of attention to the chosen blocks."""
    return Cost(*selection(p).cost(n, d, causal=causal))


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: BlocksParams, *, causal: bool) -> dict[str, Tensor]:
    """Return how each query chooses its blocks, as tensors ``[..., n, blocks]``.

    ``scores`` are the scores of the blocks, ``-inf`` for blocks that the query cannot choose. ``mass`` is the
    weight that softmax over all keys gives to each block. ``chosen``, ``bool``, marks the blocks with the highest
    scores, and ``best``, ``bool``, the blocks with the largest mass.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    n, blocks = q.shape[-2], block_count(q.shape[-2], p.block)
    rank = key_blocks.block_scorer(k, block=p.block, score=p.score, rank=p.rank, seed=p.seed)
    may = key_blocks.selectable_blocks(slice(0, n), torch.arange(blocks, device=q.device), block=p.block, causal=causal)
    full = masked_softmax(scores(q, k), visible_pairs(q, causal=causal))
    mass = key_blocks.split_blocks(full.mT, p.block).sum(-2).mT  # [..., n, blocks]
    chosen, best = (
        key_blocks.block_mask(*replace(selection(p), score=score).select(q, k, causal=causal), blocks=blocks)
        for score in (p.score, key_blocks.MASS)
    )
    return {"scores": rank(q, blocks).masked_fill(~may, -torch.inf), "chosen": chosen, "best": best, "mass": mass}


VARIANT = Variant(
    __name__,
    title="Block selection",
    summary="Each query attends to its own block of keys and to the m other blocks with the highest scores, which "
    "estimate the blocks' softmax weights.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"S_i = b(i) \cup \text{the } m \text{ best of } \{b \ne b(i)\} \text{ by } s(q_i, b)",
    complexity="n (m + 1) b d + n² d / b",
    params=BlocksParams,
    cross_reason="a query always attends to its own block, so queries and keys must come from one sequence.",
    pairs="n (m + 1) b",
    approximates="softmax",
    random=lambda p: p.score == key_blocks.INDEXER,
    source=Paper("MoBA: Mixture of Block Attention for Long-Context LLMs", 2025, "https://arxiv.org/abs/2502.13189"),
    further=(
        Paper(
            "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference",
            2024,
            "https://arxiv.org/abs/2406.10774",
        ),
        Paper(
            "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
            2025,
            "https://arxiv.org/abs/2512.02556",
        ),
        articles.TAYLOR_EXPANSIONS,
    ),
    note="Every block of keys gets a score, and each query attends to its own block and to the blocks with the "
    "highest scores. Published models are trained with this selection. Some also train an indexer, a small network "
    "that scores the keys. Here, the score “random indexer” uses a random projection instead. The score “second "
    "order” costs up to d times as much as “mean key”, where d is the head size. The score “true mass” costs as much "
    "as computing all logits.",
    special_cases=(SpecialCase("softmax", {"blocks": TOKENS}), SpecialCase("softmax", {"block": TOKENS})),
)
