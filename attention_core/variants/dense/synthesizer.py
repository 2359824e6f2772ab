"""Synthesizer: the logits are computed from the query alone, or are random, instead of dot products with keys."""

from torch import Tensor

from attention_core.ops.random import TILE, normal, normal_table
from attention_core.ops.softmax.blockwise import RowBlock, blockwise_attention, largest_block, n_pairs
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, visible_pairs
from attention_core.variant import Cost, Paper, Params, Trainable, Variant, param


class SynthesizerParams(Params):
    """Settings of the synthesizer."""

    kind: str = param(
        "dense",
        choices=("dense", "random"),
        help='Source of the logits. With "dense", a two-layer network computes a logit for every position from the '
        'query. With "random", all inputs share one random matrix of logits.',
    )
    seed: int = param(
        0,
        low=0,
        high=9999,
        help='Random seed of the network (kind "dense") or of the matrix of logits (kind "random").',
    )


def _network(k: Tensor, p: SynthesizerParams) -> tuple[Tensor, Tensor]:
    """Return the random W₁, ``[d, d]``, and W₂, ``[n, d]``, of variance 1/d, plus the learned matrices if trained."""
    n, d = k.shape[-2:]
    W1, W2 = normal((d, d), p.seed, k, 1) * d**-0.5, normal_table(range(n), d, p.seed, k, 2) * d**-0.5
    if not p.learned:
        return W1, W2
    return W1 + p.learned["inner"].to(k.dtype), W2 + p.learned["positions"][:n].to(k.dtype)


def weights(q: Tensor, k: Tensor, p: SynthesizerParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(relu(q W₁) W₂ᵀ)`` or ``softmax(R)``, ``[..., n, n]``, with random R, equal for all heads."""
    n, keys = q.shape[-2], k.shape[-2]
    if p.kind == "random":
        logits = normal_table(range(n), keys, p.seed, q)  # R, [n, n]
        if p.learned:
            logits = logits + p.learned["logits"][:n, :keys].to(q.dtype)
    else:
        W1, W2 = _network(k, p)
        logits = (q @ W1).relu() @ W2.mT  # [..., n, n]
    return masked_softmax(logits, visible_pairs(q, causal=causal)).expand(*q.shape[:-2], n, keys)


def attend(q: Tensor, k: Tensor, v: Tensor, p: SynthesizerParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries; the rows of R are drawn block by block."""
    if p.learned:  # matrices are trained, but blockwise attention computes gradients of q, k and v only
        return weights(q, k, p, causal=causal) @ v
    q, k = at_least_float32(q), at_least_float32(k)
    if p.kind == "random":

        def row_weights(_: Tensor, __: Tensor, rows: RowBlock) -> Tensor:
            return rows.softmax(normal_table(range(rows.start, rows.stop), rows.key_count, p.seed, q))

        no_queries, no_keys = (x.new_empty(x.shape[-2], 0) for x in (q, k))
        return blockwise_attention(row_weights, no_queries, no_keys, v, causal=causal)
    W1, W2 = _network(k, p)

    def dense_row_weights(queries: Tensor, _: Tensor, rows: RowBlock) -> Tensor:
        return rows.softmax((queries @ W1).relu() @ W2[: rows.key_count].mT)

    return blockwise_attention(dense_row_weights, q, k, v, causal=causal)


def cost(n: int, d: int, p: SynthesizerParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of the network (dense only) and the product with v; drawing R's n² numbers is not counted."""
    output_adds, block = d * n_pairs(n, causal=causal, keys=keys), largest_block(n, keys=keys)
    if p.kind == "random":
        return Cost(multiply_adds=output_adds, peak_elements=n * d + block + max(block, 2 * TILE**2))
    return Cost(multiply_adds=n * d * d + 2 * output_adds, peak_elements=(n + (keys or n)) * d + d * d + 2 * block)


VARIANT = Variant(
    __name__,
    title="Synthesizer",
    summary="Queries are not compared with keys: a network computes a row of logits from the query alone, or all "
    "inputs share one matrix of logits.",
    formula=r"A = \operatorname{softmax}\left(\operatorname{relu}(Q W_1)\, W_2^\top\right)"
    r"\quad\text{or}\quad \operatorname{softmax}(R)",
    complexity="n² d + n d²",
    params=SynthesizerParams,
    trainable=(
        Trainable(
            name="inner",
            title="first-layer weights of the network",
            per="layer",
            shape=lambda p, tokens, d: (d, d),
            when=lambda p: p.kind == "dense",
        ),
        Trainable(
            name="positions",
            title="second-layer weights of the network",
            per="layer",
            shape=lambda p, tokens, d: (tokens, d),
            over_positions=True,
            when=lambda p: p.kind == "dense",
        ),
        Trainable(
            name="logits",
            title="matrices of logits",
            per="layer",
            shape=lambda p, tokens, d: (tokens, tokens),
            over_positions=True,
            when=lambda p: p.kind == "random",
        ),
    ),
    source=Paper(
        "Synthesizer: Rethinking Self-Attention in Transformer Models", 2020, "https://arxiv.org/abs/2005.00743"
    ),
    random=True,
    note='In the kind "dense", a small network computes all logits of a row from the query. In "random", all '
    "inputs share one matrix of logits. In the paper, the network and the matrix are trained. The Learn page can "
    "train them too; on other pages, they are drawn at random.",
)
