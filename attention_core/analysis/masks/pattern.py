"""The query–key pairs that a variant allows on an input, and the order in which hashing variants sort the tokens.

A pattern is the union of named parts, the primitives, such as a window. A hashed order is the order in which one round
of a hash sorts the tokens of a head.
"""

from functools import reduce
from operator import or_

import numpy as np
import torch
from torch import Tensor

from attention_core.analysis.matrix.compare import allowed_pairs
from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.reachability import smallest_depth
from attention_core.variant import Variant


class Pattern(CompactRepr):
    """The allowed pairs of one variant on one record.

    Attributes:
        allowed: pairs allowed in any of the selected heads, ``bool [n, n]``.
        primitives: parts of the pattern by name, each with the pairs it allows in any head, ``bool [n, n]``; empty if
            every pair is allowed.
        pairs: number of allowed pairs in one head, averaged over the selected heads.
        possible: number of possible pairs: n², or n (n + 1) / 2 when causal, or n m with m keys of another sequence.
        farthest: largest distance |i - j| of an allowed pair, in tokens; 0 with keys of another sequence.
        step: greatest common divisor of these distances; 0 if every allowed pair is a token with itself.
        diameter: number of layers with this pattern after which every pair is connected; None if this never happens, or
            with keys of another sequence.
    """

    allowed: np.ndarray
    primitives: dict[str, np.ndarray]
    pairs: float
    possible: int
    farthest: int
    step: int
    diameter: int | None


class HashOrder(CompactRepr):
    """The order in which one round of a hash sorts the tokens of one head.

    Attributes:
        rounds: number of rounds.
        order: tokens sorted by bucket and position, ``int64 [n]``.
        borders: positions in the order at which a new chunk begins.
        parts: disjoint kinds of pairs, ``bool [n, n]`` each, with the tokens unsorted. ``bucket``: allowed, in the
            same bucket of this round. ``chunk``: allowed, the key is in the same chunk or the previous one.
            ``round``: allowed by another round or, if causal, by the hash of an earlier range of queries.
            ``itself``: the diagonal. ``missed``: in the same bucket of this round but not allowed in any round.
    """

    rounds: int
    order: np.ndarray
    borders: tuple[int, ...]
    parts: dict[str, np.ndarray]


def has_pattern(variant: Variant) -> bool:
    """Return whether the variant has a mask or pattern that excludes some pairs."""
    return variant.mask is not None or variant.pattern is not None


def pattern(qkv: QKV, attention: Attention, *, head: int | None, causal: bool) -> Pattern:
    """Compute one variant's allowed pairs; a variant without mask and pattern allows every pair.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: the variant with its settings; it gets all heads, as in the model.
        head: index of the head; None for all heads together.
        causal: whether future keys are hidden.
    """
    attention.check_causal(causal)
    if qkv.crosses:
        attention.check_cross(causal)
    qkv.check_head(head)
    if head is not None and not attention.variant.couples_heads:  # each head can be computed alone
        qkv, head = qkv.of_head(head), 0
    n, m, head_slice = qkv.n, qkv.m, slice(None) if head is None else slice(head, head + 1)
    primitives: dict[str, Tensor] = {}
    if attention.variant.primitives is None:
        by_head = allowed_pairs(qkv, attention, causal=causal)[head_slice]
    else:  # the union of the primitives is the pattern, so the pattern is not computed again
        primitives = attention.variant.primitives(qkv.q, qkv.k, attention.params, causal=causal)
        by_head = reduce(or_, primitives.values()).expand(qkv.heads, n, m)[head_slice]
    allowed = by_head.any(0)
    queries, keys = allowed.nonzero(as_tuple=True)
    distances = (queries - keys).abs().unique().numpy() if not qkv.crosses else np.zeros(1, dtype=int)
    return Pattern(
        allowed=allowed.numpy(),
        primitives={name: part.expand(qkv.heads, n, m)[head_slice].any(0).numpy() for name, part in primitives.items()},
        pairs=float(by_head.sum((-2, -1)).double().mean()),
        possible=n * (n + 1) // 2 if causal else n * m,
        farthest=int(distances.max(initial=0)),
        step=int(np.gcd.reduce(distances, initial=0)),
        diameter=None if qkv.crosses else smallest_depth([allowed], causal=causal),
    )


def hash_order(qkv: QKV, attention: Attention, number: int, *, head: int, causal: bool) -> HashOrder | None:
    """Return how a hashing variant sorts the tokens of one head into chunks; None for other variants.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: the variant with its settings.
        number: number of the round, from 0; larger numbers select the last round.
        head: index of the head.
        causal: whether future keys are hidden.
    """
    attention.mask(qkv.n, causal=causal)  # raises NotCausalError if ``causal`` is set and the variant cannot be causal
    if attention.variant.anatomy is None or not has_pattern(attention.variant):
        return None
    anatomy = attention.anatomy(*qkv.tensors, causal=causal)
    if not {"order", "buckets", "chunks", "missed"} <= anatomy.keys():
        return None
    allowed = allowed_pairs(qkv, attention, causal=causal)[head]
    rounds = anatomy["order"].shape[-2]
    order, bucket, chunk = (anatomy[name][head, min(number, rounds - 1)] for name in ("order", "buckets", "chunks"))
    # Chunks can attend to each other if their codes differ by at most one. With a causal mask, they must also be
    # in the same bucket. Adding the bucket's number makes the codes of chunks in different buckets differ by at
    # least two.
    chunk_code = chunk + bucket if causal else chunk
    chunks_back = chunk_code[:, None] - chunk_code
    is_diagonal = torch.eye(qkv.n, dtype=torch.bool)
    same_bucket = (bucket[:, None] == bucket) & ~is_diagonal
    near_chunk = (chunks_back >= 0) & (chunks_back <= 1) & ~same_bucket & ~is_diagonal
    parts = {
        "bucket": allowed & same_bucket,
        "chunk": allowed & near_chunk,
        "round": allowed & ~same_bucket & ~near_chunk & ~is_diagonal,
        "itself": allowed & is_diagonal,
        "missed": anatomy["missed"][head] & same_bucket,
    }
    borders = chunk[order].diff().nonzero().flatten() + 1
    return HashOrder(
        rounds=rounds,
        order=order.numpy(),
        borders=tuple(borders.tolist()),
        parts={name: part.numpy() for name, part in parts.items()},
    )
