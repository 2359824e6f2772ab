"""Native sparse attention: the gated sum of attention to block means, to a few selected blocks and to a window.

The three branches share queries, keys and values. The compressed branch attends to the mean key of each block and gives
all tokens of a block the same weight. The selected branch attends to the query's own block and to the blocks whose mean
keys score best. The third branch attends to a window. If causal, only queries from the last token of a block onwards
attend to its mean, and only queries of later blocks may select the block. Later tokens therefore change no earlier
output.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.blocks.block_selection import Selection
from attention_core.ops.blocks.key_blocks import block_count, is_filled, split_blocks
from attention_core.ops.pattern.parts import earlier_blocks_attention
from attention_core.ops.pattern.pieces import residue_pairs
from attention_core.ops.pattern.primitives import pattern_from_primitives
from attention_core.ops.pattern.window import is_in_window, window_attention, window_cost
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, distances, masked_softmax, positions, scores, top_k_mask
from attention_core.variant import Cost, Intermediate, Paper, Params, SpecialCase, Variant, param


class NsaParams(Params):
    """Settings of native sparse attention."""

    block: int = param(
        8,
        low=1,
        high=1024,
        scale="log",
        help="Number b of tokens per block. The first block starts at the first token.",
    )
    blocks: int = param(2, low=0, high=256, help="Number m of blocks selected in addition to the query's own block.")
    window: int = param(
        16,
        low=1,
        high=4096,
        scale="log",
        help="Number w of tokens in the window, which ends at the query's own token. Without a causal mask, the "
        "window extends equally far to both sides.",
    )
    gate_compressed: float = param(
        0.5,
        low=0.0,
        high=1.0,
        step=0.05,
        help="Gate of the attention to block means: the factor by which its output is multiplied.",
    )
    gate_selected: float = param(
        0.5,
        low=0.0,
        high=1.0,
        step=0.05,
        help="Gate of the attention to selected blocks: the factor by which its output is multiplied.",
    )
    gate_window: float = param(
        0.5,
        low=0.0,
        high=1.0,
        step=0.05,
        help="Gate of the attention to the window: the factor by which its output is multiplied.",
    )


def ended_blocks(n: int, block: int, device: torch.device | None) -> Tensor:
    """Return for each query which blocks end at or before it, ``bool [n, blocks]``."""
    ends = (torch.arange(block_count(n, block), device=device) + 1) * block
    return ends <= torch.arange(1, n + 1, device=device)[:, None]


def block_means(x: Tensor, block: int) -> Tensor:
    """Return the mean of the tokens of each block of ``block`` tokens, ``[..., blocks, d]``."""
    count = is_filled(x.shape[-2], block, x.device).sum(-1, keepdim=True)
    return split_blocks(x, block).sum(-2) / count


def selection(p: NsaParams) -> Selection:
    """Return the rule that selects for each query the blocks whose mean keys have the largest logits.

    These blocks also have the largest weights in the compressed branch.
    """
    return Selection(block=p.block, count=p.blocks)


def primitives(q: Tensor, k: Tensor, p: NsaParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the masks of the branches with a positive gate, by name, ``bool [..., n, n]``.

    The selected branch has two masks: one for own blocks and one for chosen blocks.
    """
    n = q.shape[-2]
    is_covered = ended_blocks(n, p.block, q.device).repeat_interleave(p.block, -1)[:, :n]
    selected = selection(p).primitives(q, k, causal=causal)
    return {
        **{name: selected[name] & (p.gate_selected > 0) for name in ("chosen", "block")},
        "window": is_in_window(distances(n, q.device), p.window - 1, causal=causal) & (p.gate_window > 0),
        "compressed": (is_covered if causal else torch.ones_like(is_covered)) & (p.gate_compressed > 0),
    }


pattern = pattern_from_primitives(primitives)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: NsaParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the matrices of the three branches, ``[..., n, n]`` each, before their gates.

    ``compressed`` spreads the weight of a block's mean evenly over the block's tokens. If causal, its rows before the
    end of the first block are zero. ``selected`` and ``near`` (the window) are the other two branches. ``outline``,
    ``[..., n, blocks]``, holds the weights of the means.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    n, logits = q.shape[-2], scores(q, k)
    mask = ended_blocks(n, p.block, q.device) if causal else None
    block_weights = masked_softmax(scores(q, block_means(k, p.block)), mask)
    count = is_filled(n, p.block, q.device).sum(-1)
    chosen = selection(p).primitives(q, k, causal=causal)
    return {
        "outline": block_weights,
        "compressed": (block_weights / count).repeat_interleave(p.block, -1)[..., :n],
        "selected": masked_softmax(logits, chosen["block"] | chosen["chosen"]),
        "near": masked_softmax(logits, is_in_window(distances(n, q.device), p.window - 1, causal=causal)),
    }


def weights(q: Tensor, k: Tensor, p: NsaParams, *, causal: bool) -> Tensor:
    """Compute the sum of the three branches, each times its gate, ``[..., n, n]``."""
    parts = anatomy(q, k, k, p, causal=causal)
    return p.gate_compressed * parts["compressed"] + p.gate_selected * parts["selected"] + p.gate_window * parts["near"]


def definition(q: Tensor, k: Tensor, v: Tensor, p: NsaParams, *, causal: bool) -> Tensor:
    """Compute the sum of the three masked branches, each times its gate, and multiply it by v, ``[..., n, d_v]``."""
    (i, j), logits = positions(q.shape[-2], q.device), scores(q, k)
    own_block, block, visible = i // p.block, j[:, :: p.block] // p.block, (j <= i) | (not causal)
    membership = (own_block == block).mT.to(q)  # [blocks, n], the tokens of each block
    P = membership / membership.sum(-1, keepdim=True)
    block_logits = scores(q, P @ k)  # [..., n, blocks], each query with the mean keys
    is_ended = ((block + 1) * p.block <= i + 1) | (not causal)
    compressed = masked_softmax(block_logits, is_ended) @ P
    selectable = block < own_block if causal else block != own_block  # [n, blocks]
    chosen = top_k_mask(block_logits.masked_fill(~selectable, -torch.inf), p.blocks) & selectable
    selected = masked_softmax(logits, visible & ((own_block == own_block.mT) | chosen[..., j[0] // p.block]))
    window = masked_softmax(logits, visible & ((i - j).abs() < p.window))
    return (p.gate_compressed * compressed + p.gate_selected * selected + p.gate_window * window) @ v


def attend(q: Tensor, k: Tensor, v: Tensor, p: NsaParams, *, causal: bool) -> Tensor:
    """Compute the output: the sum of the branches with a positive gate, without a matrix.

    For blocks of b tokens, m chosen blocks and window w, it takes O(n (n / b + m b + w) d) time, O(n (m + d))
    memory.
    """
    total = torch.zeros_like(at_least_float32(v))
    for factor, out in gated_branches(q, k, v, p, causal=causal):
        total.add_(out, alpha=factor)
        del out  # free its memory before the next branch begins
    return total.to(v.dtype)


def gated_branches(q: Tensor, k: Tensor, v: Tensor, p: NsaParams, *, causal: bool) -> Iterator[tuple[float, Tensor]]:
    """Yield each positive gate and the output of its branch, ``[..., n, d_v]``."""
    if p.gate_compressed:
        yield (
            p.gate_compressed,
            compressed_branch(at_least_float32(q), at_least_float32(k), at_least_float32(v), p.block, causal=causal),
        )
    if p.gate_selected:
        yield p.gate_selected, selection(p).attend(q, k, v, causal=causal)
    if p.gate_window:
        yield p.gate_window, window_attention(q, k, v, p.window - 1, causal=causal)


def compressed_branch(q: Tensor, k: Tensor, v: Tensor, block: int, *, causal: bool) -> Tensor:
    """Return attention to the means of the blocks, ``[..., n, d_v]``; if causal, zeros until the first block ends."""
    if not causal:
        return exact_attention(q, block_means(k, block), block_means(v, block))
    n = q.shape[-2]
    if n < block:
        return torch.zeros_like(v)
    keys, values = (block_means(x[..., : n // block * block, :], block) for x in (k, v))
    # ``earlier_blocks_attention`` attends to the blocks before a query's own, but the last query of a block may attend
    # to its own block's mean as well. One query of padding at the start moves each last query into the next block. The
    # output begins at the last query of the first block; the queries before it get zeros.
    out, _ = earlier_blocks_attention(F.pad(q, (0, 0, 1, 0)), keys, values, block=block)
    return F.pad(out, (0, 0, block - 1, 0))


def cost(n: int, d: int, p: NsaParams, *, causal: bool) -> Cost:
    """Return the cost of the branches, which run one after another; memory holds their sum and the largest branch."""
    adds, peaks = 0, [0]
    if p.gate_compressed:
        m = block_count(n, p.block)
        if not causal:
            adds, peaks = 2 * n * m * d, [n * (d + 1) + 2 * m * d]
        elif n >= p.block:
            adds, peaks = 2 * residue_pairs(n + 1 - p.block, p.block, causal=True) * d, [n * (3 * d + 2) + 2 * m * d]
    if p.gate_selected:
        selected_adds, peak = selection(p).cost(n, d, causal=causal)
        adds, peaks = adds + selected_adds, [*peaks, peak]
    if p.gate_window:
        window_adds, peak = window_cost(n, d, p.window - 1, causal=causal)
        adds, peaks = adds + window_adds, [*peaks, peak]
    return Cost(multiply_adds=adds, peak_elements=n * d + max(peaks))


VARIANT = Variant(
    __name__,
    title="Native sparse",
    summary="Each query attends to block means, to all tokens of the best-scoring blocks and to a local window. The "
    "three outputs are each multiplied by a factor (gate) and added.",
    formula=r"A = g_1\, \operatorname{softmax}\left(\frac{Q \bar K^\top}{\sqrt d}\right) P"
    r" + g_2\, \operatorname{softmax}_{S_i}\left(\frac{Q K^\top}{\sqrt d}\right)"
    r" + g_3\, \operatorname{softmax}_{|i-j| < w}\left(\frac{Q K^\top}{\sqrt d}\right),\quad \bar K = P K",
    complexity="n² d / b + n (m + 1) b d + n w d",
    params=NsaParams,
    cross_reason="a query attends to a window around its own position, so queries and keys must come from one "
    "sequence.",
    rows_sum_to_one=False,
    intermediates=(
        Intermediate(
            name="outline",
            title="Block means",
            symbol="B",
            formula=r"B = \operatorname{softmax}\left(\frac{Q \bar K^\top}{\sqrt d}\right),\quad \bar k_b = "
            r"\frac{1}{|b|} \sum_{j \in b} k_j",
            mechanism="The keys of each block are averaged, and each query attends to these means.",
            columns="block",
        ),
        Intermediate(
            name="compressed",
            title="Compressed branch",
            symbol="A^{(1)}",
            formula=r"A^{(1)}_{ij} = \frac{B_{i\,b(j)}}{|b(j)|}",
            mechanism="The first of the variant's three branches is softmax attention to the means of blocks. The "
            "weight of a mean is spread evenly over the tokens of its block.",
        ),
        Intermediate(
            name="selected",
            title="Selected branch",
            symbol="A^{(2)}",
            formula=r"A^{(2)} = \operatorname{softmax}\left(\frac{QK^\top}{\sqrt d} + M^{\text{selected}}\right)",
            mechanism="The second of the variant's three branches is softmax attention to the tokens of the query's "
            "own block and of the selected blocks.",
        ),
        Intermediate(
            name="near",
            title="Window branch",
            symbol="A^{(3)}",
            formula=r"A^{(3)} = \operatorname{softmax}\left(\frac{QK^\top}{\sqrt d} + M^{\text{window}}\right)",
            mechanism="The third of the variant's three branches is softmax attention to a local window. The "
            "attention matrix is the sum of the matrices of all branches, each multiplied by a factor, its gate.",
        ),
    ),
    source=Paper(
        "Native Sparse Attention: Hardware-Aligned and Natively Trainable Sparse Attention",
        2025,
        "https://arxiv.org/abs/2502.11089",
    ),
    note="This variant has three branches: attention to block means, to selected blocks and to a local window. In "
    "the paper (NSA), the gates and the vectors that summarise blocks are learned, and each branch has its own "
    "keys and values. The paper also always selects the first block. Here, gates are constants, and blocks are "
    "summarised by their means. The weights of a row sum to the sum of the gates. With a causal mask, the branch "
    "over block means has no weight until the first block is complete.",
    special_cases=(
        SpecialCase(
            "blocks", {"gate_compressed": 0.0, "gate_selected": 1.0, "gate_window": 0.0}, shared=("block", "blocks")
        ),
        SpecialCase("local", {"gate_compressed": 0.0, "gate_selected": 0.0, "gate_window": 1.0, "window": 17}),
    ),
)
