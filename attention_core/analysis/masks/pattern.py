"""Who may look at whom, and what allows it."""

from functools import reduce
from operator import or_

import numpy as np
import torch
from torch import Tensor

from attention_core.analysis.matrix.compare import visible
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.reachability import smallest_depth
from attention_core.variant import Attention, Variant


class Pattern(CompactRepr):
    """One variant's pattern on one record.

    Attributes:
        allowed: the pairs that may look in any of the heads looked at, ``bool [n, n]``.
        primitives: what the pattern is made of, by name; each with the pairs it allows in any head, ``bool [n, n]``;
            empty where every pair may look.
        pairs: pairs that may look in one head; the mean over the heads looked at.
        possible: pairs that could: n², or n (n + 1) / 2 when causal.
        farthest: the largest distance |i - j| of a pair that may look, in tokens.
        diameter: layers of this pattern alone until every pair is connected; None: never.
    """

    allowed: np.ndarray
    primitives: dict[str, np.ndarray]
    pairs: float
    possible: int
    farthest: int
    diameter: int | None


class Hashed(CompactRepr):
    """How one round of a hash sorts the tokens of one head.

    Attributes:
        rounds: how many rounds there are.
        order: tokens by bucket and position, ``int64 [n]``.
        borders: places in the order where a new chunk begins.
        parts: kinds of pairs, ``bool [n, n]`` each, in the order of the text and without a pair in common: ``bucket``,
            looked at and of one bucket in this round; ``chunk``, looked at from its chunk or the next; ``round``,
            looked at for the sake of another round or, causal, of an earlier stretch; ``itself``; ``missed``, of one
            bucket in this round and looked at in none.
    """

    rounds: int
    order: np.ndarray
    borders: tuple[int, ...]
    parts: dict[str, np.ndarray]


def has_pattern(variant: Variant) -> bool:
    """Whether the variant keeps some pairs from looking at each other."""
    return variant.mask is not None or variant.pattern is not None


def pattern(qkv: QKV, attention: Attention, *, head: int | None, causal: bool) -> Pattern:
    """Find one variant's pattern; one without mask and pattern lets every pair look.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: the variant with its settings; it sees all heads, as in the model.
        head: the head to look at; None for all of them together.
        causal: whether the future is hidden.

    Raises:
        NotCausalError: if the variant cannot be causal and causal is asked.
    """
    attention.mask(qkv.n, causal=causal)  # refuses what cannot be causal
    if head is not None and not attention.variant.couples_heads:  # the others would be found for nothing
        qkv, head = qkv.of_head(head), 0
    n, every = qkv.n, slice(None) if head is None else slice(head, head + 1)
    found: dict[str, Tensor] = {}
    if attention.variant.primitives is None:
        seen = visible(qkv, attention, causal=causal)[every]
    else:  # whose union is the pattern, which need not be found a second time
        found = attention.variant.primitives(qkv.q, qkv.k, attention.params, causal=causal)
        seen = reduce(or_, found.values()).expand(qkv.heads, n, n)[every]
    allowed = seen.any(0)
    queries, keys = allowed.nonzero(as_tuple=True)
    return Pattern(
        allowed=allowed.numpy(),
        primitives={name: part.expand(qkv.heads, n, n)[every].any(0).numpy() for name, part in found.items()},
        pairs=float(seen.sum((-2, -1)).double().mean()),
        possible=n * (n + 1) // 2 if causal else n * n,
        farthest=int((queries - keys).abs().max()) if len(queries) else 0,
        diameter=smallest_depth([allowed], causal=causal),
    )


def hashed(qkv: QKV, attention: Attention, number: int, *, head: int, causal: bool) -> Hashed | None:
    """How a variant sorts the tokens of one head into chunks; None for one that does not.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: the variant with its settings.
        number: of the round, from 0; the last one where there are not so many.
        head: the head to look at.
        causal: whether the future is hidden.

    Raises:
        NotCausalError: if the variant cannot be causal and causal is asked.
    """
    attention.mask(qkv.n, causal=causal)  # refuses what cannot be causal
    if attention.variant.anatomy is None or not has_pattern(attention.variant):
        return None
    found = attention.anatomy(*qkv.tensors, causal=causal)
    if not {"order", "buckets", "chunks", "missed"} <= found.keys():
        return None
    seen = visible(qkv, attention, causal=causal)[head]
    rounds = found["order"].shape[-2]
    order, bucket, chunk = (found[name][head, min(number, rounds - 1)] for name in ("order", "buckets", "chunks"))
    code = chunk + bucket if causal else chunk  # causal, chunks of two buckets never see each other
    behind = code[:, None] - code
    itself = torch.eye(qkv.n, dtype=torch.bool)
    same = (bucket[:, None] == bucket) & ~itself
    near = (behind >= 0) & (behind <= 1) & ~same & ~itself
    parts = {
        "bucket": seen & same,
        "chunk": seen & near,
        "round": seen & ~same & ~near & ~itself,
        "itself": seen & itself,
        "missed": found["missed"][head] & same,
    }
    begins = chunk[order].diff().nonzero().flatten() + 1
    return Hashed(
        rounds=rounds,
        order=order.numpy(),
        borders=tuple(begins.tolist()),
        parts={name: part.numpy() for name, part in parts.items()},
    )
