"""Claim: attention that averages tokens before attending leaks the future, even if a mask is applied afterwards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import articles, registry
from attention_core.analysis.matrix.influence import MAX_TOKENS
from attention_core.attention import Attention
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of
from attention_core.inputs.source import first_tokens_at_most
from attention_core.ops.low_rank.inverse import inverse_steps
from attention_core.ops.low_rank.pooling import even_segments, pooling_matrix
from attention_core.ops.softmax.masked import normalise_rows
from attention_core.variant import Variant

WITHOUT_POOLING = ("softmax", "local", "linear")
"""Variants without pooling, for comparison: dense, sparse and linear attention."""
CHANGE_TOLERANCE = 1e-6
"""Relative change from which an output counts as changed; far above float64 rounding."""
NO_MASK, ON_WEIGHTS, ON_POOLS = ("no mask", "weights on later tokens masked", "mask on pools that contain later tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakRow:
    """How far back a change of the last token changes outputs, for one variant and mask.

    Attributes:
        variant: the variant's title.
        mask: ``NO_MASK``, ``ON_WEIGHTS`` or ``ON_POOLS``.
        pools: whether the variant pools tokens.
        back: number of tokens from the first changed output to the last token; 0 if no earlier output changes.
        blind: number of rows whose weights are all zero in at least one head.
        n: number of tokens.
    """

    variant: str
    mask: str
    pools: bool
    back: int
    blind: int
    n: int


def measure(inputs: ExperimentInput) -> Iterator[LeakRow]:
    """Yield, per variant and mask, how far before the last token outputs change when the last token changes.

    Raises:
        UntestableError: if no weight depends on the last token's query and key.
    """
    qkv = inputs.record()
    qkv = first_tokens_at_most(qkv, MAX_TOKENS)
    before = [x.double() for x in qkv.tensors]
    after = [torch.cat([x[:, :-1], -x[:, -1:]], 1) for x in before]
    softmax = registry.get("softmax").weights
    if (softmax(*before[:2]) - softmax(*after[:2])).abs().max() <= CHANGE_TOLERANCE:
        raise UntestableError(
            "In this input, no weight depends on the last token's query and key, so no information could leak from "
            "this token. Choose another input."
        )
    pooled = [pooling_attention(variant, qkv.n) for variant in registry.all_variants() if variant.family == "low_rank"]
    for attention in (*pooled, *(registry.get(key) for key in WITHOUT_POOLING)):
        pools = attention in pooled
        for mask in (NO_MASK, ON_WEIGHTS, ON_POOLS) if pools else (NO_MASK, ON_WEIGHTS):
            weights, changed_weights = (masked_matrix(attention, mask, *tensors) for tensors in (before, after))
            first = first_changed(weights @ before[2], changed_weights @ after[2])
            yield LeakRow(
                variant=attention.title,
                mask=mask,
                pools=pools,
                back=0 if first is None else qkv.n - 1 - first,
                blind=int((weights == 0).all(-1).any(0).sum()),
                n=qkv.n,
            )


def pooling_attention(variant: Variant, n: int) -> Attention:
    """Return a low-rank variant with its default settings, but at most n/2 landmarks, so that it does pool tokens."""
    budget = variant.budget
    if budget is None or not isinstance(budget.default, int):
        return registry.get(variant.key)
    return registry.get(variant.key, **{budget.name: max(int(budget.low or 1), min(budget.default, n // 2))})


def masked_matrix(attention: Attention, mask: str, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the attention matrix under a mask, ``[..., n, n]``.

    ``ON_WEIGHTS`` sets weights on later tokens to zero and divides each row by its sum. ``ON_POOLS`` masks each
    factor of the matrix instead. A factor has tokens or pools as its queries and keys. The position of a pool is
    that of its last token. In every factor, a query attends only to keys whose position is not later than its own.

    With ``ON_POOLS``, the matrix between landmarks and its inverse are triangular. Nyström's iterations for the
    inverse start from the transpose, so until they converge, early rows depend on late landmarks.
    """
    if mask != ON_POOLS:
        weights = attention.weights(q, k)
        return normalise_rows(weights.tril()) if mask == ON_WEIGHTS else weights
    parts = attention.anatomy(q, k, v)
    left, right = parts["left"], parts["right"]
    n, m = left.shape[-2:]
    pools = parts.get("provenance", pooling_matrix(even_segments(n, m), q))
    position = torch.arange(n)
    ends = torch.where(pools != 0, position, 0).amax(-1)
    left = normalise_rows(left * (ends <= position[:, None]))
    right = normalise_rows(right * (position <= ends[:, None]))
    if "middle" in parts:
        middle = normalise_rows(parts["middle"] * (ends <= ends[:, None]))
        *_, inverse = inverse_steps(middle, getattr(attention.params, "iterations"))  # noqa: B009
        right = inverse @ right
    return left @ right


def first_changed(before: Tensor, after: Tensor) -> int | None:
    """Return the first position whose output changed in any head, without the last one; None if no output changed.

    ``before`` and ``after`` are the outputs before and after the change of the last token, ``[H, n, d_v]``.
    """
    change, size = (torch.linalg.vector_norm(x[:, :-1], dim=-1) for x in (after - before, before))
    positions = (change > CHANGE_TOLERANCE * size).any(0).nonzero()
    return int(positions[0]) if len(positions) else None


def numbers(rows: Sequence[LeakRow]) -> Numbers:
    """Return how many variants leak through each mask, how far back, and how many rows ``ON_POOLS`` leaves empty."""
    on_weights, on_pools = ([row for row in rows if row.mask == mask] for mask in (ON_WEIGHTS, ON_POOLS))
    return {
        "leaking": sum(row.back > 0 for row in on_weights if row.pools),
        "pooled": sum(row.pools for row in on_weights),
        "back": max(row.back for row in on_weights if row.pools),
        "moved": sum(row.back > 0 for row in on_weights if not row.pools),
        "others": sum(not row.pools for row in on_weights),
        "left": sum(row.back > 0 for row in on_pools),
        "fewest": min(row.blind for row in on_pools),
        "most": max(row.blind for row in on_pools),
        "n": rows[0].n,
    }


CLAIM = Claim(
    statement="If attention combines tokens into pools (such as averages), later tokens change earlier outputs, and "
    "a causal mask applied afterwards does not prevent this.",
    short="pooling leaks later tokens despite masking",
    source=articles.NYSTROMFORMER,
    place=Place("causal", {"c_view": "leak"}),
    experiment="A pool combines several tokens, for example into their mean. A variant leaks if changing a token "
    "also changes an output at an earlier position. The test uses at most the first 256 tokens. It reverses the "
    "signs of the last token's query, key and value, and then finds the earlier outputs that changed. The test runs "
    "three times: without a mask, and with each of two masks. The first mask sets the weights on later tokens to "
    "zero and then normalises the rows again. The second mask hides each pool from all positions before the pool's "
    "last token.",
    rule="A pooled variant combines groups of tokens into pools. A variant leaks if changing the last token also "
    "changes an earlier output. Two masks are tested. The first mask sets the weights on later tokens in the final "
    "attention matrix to zero. The second mask hides each pool from all queries before the pool's last token. The "
    "claim is that pools leak with either mask. It holds if three conditions are met. (1) Every pooled variant leaks "
    "with the first mask. (2) Every pooled variant leaks with the second mask. (3) No variant without pools leaks with "
    "the first mask. The claim partly holds if at least {partly} pooled variants leak with the first mask.",
    bounds={"partly": 3},
    verdict=Rule(
        requires=Condition("leaking", ">=", "partly"),
        holds=all_of(
            Condition("leaking", ">=", Measured("pooled")),
            Condition("left", ">=", Measured("pooled")),
            Condition("moved", "<=", 0.0),
        ),
    ),
    finding="A pool combines several tokens, so a query that attends to a pool can also use later tokens. If only "
    "weights on later tokens are masked, changing the last token still changes earlier outputs (a leak) in "
    "{leaking} of {pooled} variants with pools.",
    details="If only weights on later tokens are masked, a changed token changes outputs up to {back} tokens before "
    "it in variants with pools. If instead every pool is hidden from queries before the pool's last token, {fewest} "
    "to {most} of {n} queries have no key to attend to, depending on the variant. A variant still leaks if it mixes "
    "pools afterwards, as the iterations that invert Nyström's landmark matrix do.",
    quantities=(
        Quantity(
            "leaking", "variants with pools that leak although weights on later tokens are masked", total="pooled"
        ),
        Quantity(
            "left",
            "variants with pools that leak even if each pool is hidden from queries before its last token",
            total="pooled",
        ),
        Quantity("pooled", "number of variants with pools"),
        Quantity(
            "back",
            "largest distance from the changed token to an earlier output that changes, if weights on later tokens "
            "are masked",
            "tokens",
        ),
        Quantity(
            "fewest", "number of queries without any key if pools with later tokens are hidden, smallest over variants"
        ),
        Quantity(
            "most", "number of queries without any key if pools with later tokens are hidden, largest over variants"
        ),
        Quantity("n", "number of queries"),
        Quantity(
            "moved", "variants without pools that leak although weights on later tokens are masked", total="others"
        ),
        Quantity("others", "number of tested variants without pools"),
    ),
    figure=Figure(
        x=Axis("variant", "variant"),
        y=Axis("back", "how far back a change leaks (tokens)"),
        by="mask",
        kind="bars",
        main=(ON_WEIGHTS, ON_POOLS),
    ),
    needs=4,
    theorem="A pool depends on all of its tokens. If only the weights are masked, the pool still contains later "
    "tokens. If the pool is hidden from queries before its last token, nothing leaks unless pools are mixed "
    "afterwards.",
)
