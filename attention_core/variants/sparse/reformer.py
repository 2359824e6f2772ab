"""Reformer attention: a random hash sorts similar tokens next to each other, and tokens attend to their neighbours.

Queries and keys are the same vectors (shared QK): the queries, normalised to unit length, serve as keys, and the given
keys are ignored. Logits are ``q_i · q_j / |q_j|`` without a further ``1/√d``, as in the original. A token attends to
itself only if it attends to no other token. Each round hashes every token into a bucket, sorts the tokens by (bucket,
position) and cuts the sorted list into chunks of c tokens, regardless of bucket boundaries. A token attends to its own
chunk and to the previous one. The first chunk has no previous chunk, as in the paper; the paper's implementations let
it attend to the last chunk. The pattern is the union over all rounds.

If causal, masking alone would leak the future: a later token shifts the chunks after it in the sorted list, and a
longer text has more buckets. Therefore, each bucket is cut into chunks separately, which depends only on earlier
tokens. The number of buckets grows along the text: queries up to position 2c use one bucket, queries up to 8c use 4,
queries up to 32c use 16, and so on. Appending tokens therefore changes no earlier output.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops import lsh
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, positions
from attention_core.variant import Cost, Paper, Params, Variant, param


class ReformerParams(Params):
    """Settings of Reformer attention."""

    bucket_size: int = param(
        8,
        low=2,
        high=512,
        scale="log",
        help="Number c of tokens per chunk. The tokens are sorted by hash and cut into chunks. A query attends to "
        "its own chunk and to the previous chunk. In one round, it therefore attends to at most 2c tokens. The "
        "larger the chunks, the fewer different hashes are used, so more tokens share a hash.",
    )
    rounds: int = param(
        2,
        low=1,
        high=16,
        help="Number m of rounds, each of which sorts the tokens by a different random hash. A round can find pairs of "
        "similar tokens that other rounds miss.",
        budget=True,
    )
    seed: int = param(0, low=0, high=9999, help="Random seed of the hash by which the tokens are sorted.")


def query_segments(n: int, p: ReformerParams, *, causal: bool) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return segments of queries ``start <= i < stop``, each with the hash sizes for the tokens before ``stop``."""
    c = p.bucket_size
    if not causal:
        return [(0, n, lsh.hash_sizes(max(2, n / c), max(4, c)))]
    segments, start, stop = [], 0, 2 * c
    while start < n:
        segments.append((start, min(stop, n), lsh.hash_sizes(stop / (2 * c), max(4, c))))
        start, stop = stop, 4 * stop
    return segments


def hash_rounds(q: Tensor, stop: int, sizes: tuple[int, ...], p: ReformerParams) -> list[Tensor]:
    """Return each round's buckets of the tokens before ``stop``, ``int64 [..., stop]``.

    The hash is ``argmax [q R; -q R]`` with random R. The product of the hash ``sizes`` is the number of buckets.
    """
    return [lsh.hash_buckets(q[..., :stop, :], sizes, p.seed, number) for number in range(p.rounds)]


def round_pairs(bucket: Tensor, same: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Return the pairs that one round allows, ``bool [..., n, n]``.

    ``bucket``, ``int64 [..., n]``, is the bucket of each token. ``same``, ``bool [..., n, n]``, marks the pairs of
    tokens in one bucket.
    """
    # If causal, each bucket is cut into chunks by itself, so ``place`` counts from the bucket's first token. Otherwise,
    # ``place`` is the place in one list of all tokens, which is sorted by bucket and then by position.
    place = same.tril(-1).sum(-1) if causal else lsh.bucket_order(lsh.bucket_order(bucket))  # [..., n]
    chunk = place // p.bucket_size
    chunk_distance = chunk.unsqueeze(-1) - chunk.unsqueeze(-2)  # [..., n, n]
    allowed = (chunk_distance == 0) | (chunk_distance == 1)
    return allowed & same if causal else allowed


def exclude_self(allowed: Tensor, *, causal: bool) -> Tensor:
    """Return ``allowed`` without the pair of each token with itself, unless the token has no other pair."""
    self_pair = torch.eye(allowed.shape[-1], dtype=torch.bool, device=allowed.device)
    others = allowed.tril(-1) if causal else allowed & ~self_pair
    return others | (self_pair & ~others.any(-1, keepdim=True))


def allowed_and_same_bucket(q: Tensor, p: ReformerParams, *, causal: bool) -> tuple[Tensor, Tensor]:
    """Return two masks, ``bool [..., n, n]``: pairs that some round allows, and pairs in one bucket in some round."""
    q, n = at_least_float32(q), q.shape[-2]
    allowed, same_bucket = torch.zeros(2, *q.shape[:-1], n, dtype=torch.bool, device=q.device)
    for start, stop, sizes in query_segments(n, p, causal=causal):
        for bucket in hash_rounds(q, stop, sizes, p):
            same = bucket.unsqueeze(-1) == bucket.unsqueeze(-2)  # [..., stop, stop]
            allowed[..., start:stop, :stop] |= round_pairs(bucket, same, p, causal=causal)[..., start:, :]
            same_bucket[..., start:stop, :stop] |= same[..., start:, :]
    self_pair = torch.eye(n, dtype=torch.bool, device=q.device)
    return exclude_self(allowed, causal=causal), same_bucket.tril(-1) if causal else same_bucket & ~self_pair


def pattern(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Return the pairs that some round allows, ``bool [..., n, n]``."""
    return allowed_and_same_bucket(q, p, causal=causal)[0]


def primitives(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> dict[str, Tensor]:
    """Return masks by name: pairs that share a bucket, pairs that only share chunks, and lone tokens' own pairs."""
    allowed, same_bucket = allowed_and_same_bucket(q, p, causal=causal)
    self_pair = torch.eye(q.shape[-2], dtype=torch.bool, device=q.device)
    return {
        "bucket": allowed & same_bucket,
        "chunk": allowed & ~same_bucket & ~self_pair,
        "itself": allowed & self_pair,
    }


def logits(q: Tensor) -> Tensor:
    """Compute the shared logits ``q_i · q_j / |q_j|``, ``[..., n, n]``."""
    return q @ F.normalize(q, dim=-1).mT


def weights(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Compute softmax of the shared logits over the pattern, ``[..., n, n]``; ``k`` is ignored."""
    return masked_softmax(logits(q), pattern(q, k, p, causal=causal))


def reference(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Return softmax of the shared logits over all other tokens, ``[..., n, n]``: what many rounds converge to."""
    shared_logits = logits(at_least_float32(q))
    pairs = exclude_self(torch.ones_like(shared_logits, dtype=torch.bool), causal=causal)
    return masked_softmax(shared_logits, pairs).to(q.dtype)


def definition(q: Tensor, k: Tensor, v: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Compute softmax of the shared logits over the union of all rounds' pairs, times v, ``[..., n, d_v]``."""
    i, j = positions(q.shape[-2], q.device)
    allowed = torch.zeros(*q.shape[:-1], q.shape[-2], dtype=torch.bool, device=q.device)  # [..., n, n]
    for start, stop, sizes in query_segments(q.shape[-2], p, causal=causal):
        for bucket in hash_rounds(q, stop, sizes, p):
            same = bucket.unsqueeze(-1) == bucket.unsqueeze(-2)  # [..., stop, stop]
            # ``position``: if causal, a token's place in its bucket. Otherwise, its place in the list of all tokens,
            # which is sorted by bucket and, within a bucket, by the order of the text.
            position = same.tril(-1).sum(-1) if causal else bucket.argsort(stable=True).argsort()
            chunk = position // p.bucket_size
            chunk_distance = chunk.unsqueeze(-1) - chunk.unsqueeze(-2)  # 0: the same chunk, 1: the previous one
            near = ((chunk_distance == 0) | (chunk_distance == 1)) & (same | (not causal))
            allowed[..., start:stop, :stop] |= near[..., start:, :]
    allowed &= j < i if causal else j != i
    allowed |= (i == j) & ~allowed.any(-1, keepdim=True)  # a token without any other key attends to itself
    return masked_softmax(q @ F.normalize(q, dim=-1).mT, allowed) @ v


def chunk_rounds(buckets: list[Tensor], sizes: tuple[int, ...], p: ReformerParams, *, causal: bool) -> list[lsh.Chunks]:
    """Return each round's chunks, given its buckets, so that ``lsh_attention`` need not test all n² pairs."""
    if causal:
        return [lsh.bucket_chunks(bucket, math.prod(sizes), p.bucket_size) for bucket in buckets]
    return [lsh.sorted_chunks(bucket, p.bucket_size) for bucket in buckets]


def attend(q: Tensor, k: Tensor, v: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Compute the output in m rounds, in chunks of c tokens: O(m n (c d + log n)) time, O(n d) memory.

    ``k`` is ignored.
    """
    queries, values = at_least_float32(q), at_least_float32(v)
    keys = F.normalize(queries, dim=-1)
    outs = []
    for start, stop, sizes in query_segments(q.shape[-2], p, causal=causal):
        rounds = chunk_rounds(hash_rounds(queries, stop, sizes, p), sizes, p, causal=causal)
        earlier = (x[..., :stop, :] for x in (queries, keys, values))
        outs.append(lsh.lsh_attention(*earlier, rounds=rounds, causal=causal)[..., start:, :])
    return torch.cat(outs, -2).to(v.dtype)


def cost(n: int, d: int, p: ReformerParams, *, causal: bool) -> Cost:
    """Return the cost: the hash, and products with k and v within chunks; memory for keys, outputs and their copies."""
    adds = peak = 0
    for _, stop, sizes in query_segments(n, p, causal=causal):
        size, runs = min(p.bucket_size, stop), math.prod(sizes) if causal else 1
        slots, block = size * lsh.max_chunks(stop, runs, size), lsh.largest_block(stop, runs, size)
        adds += p.rounds * (stop * d * (sum(sizes) // 2) + 4 * slots * size * d)
        token_elements = stop * (d + 4 * p.rounds + 5) + (slots + size) * (4 * d + p.rounds + 5)
        peak = max(peak, n * d + token_elements + block * 3 // 2 + block // (2 * size) * d)
    return Cost(multiply_adds=adds, peak_elements=peak)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: ReformerParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the buckets and chunks of each round, and the pairs that all rounds miss.

    ``buckets``, ``order`` (the tokens sorted by bucket and position) and ``chunks`` are ``int64 [..., rounds, n]``; if
    causal, they describe the last segment of ``query_segments``. ``missed``, ``bool [..., n, n]``, are pairs that share
    a bucket in some round but are not in the pattern. ``all_pairs``, ``[..., n, n]``, is the reference: softmax over
    all pairs.
    """
    q = at_least_float32(q)
    allowed, same_bucket = allowed_and_same_bucket(q, p, causal=causal)
    _, stop, sizes = query_segments(q.shape[-2], p, causal=causal)[-1]
    round_buckets = hash_rounds(q, stop, sizes, p)
    chunks, buckets = chunk_rounds(round_buckets, sizes, p, causal=causal), torch.stack(round_buckets, -2)
    return {
        "buckets": buckets,
        "order": lsh.bucket_order(buckets),
        "chunks": torch.stack([c.slot // c.size for c in chunks], -2),
        "missed": same_bucket & ~allowed,
        "all_pairs": reference(q, k, p, causal=causal),
    }


VARIANT = Variant(
    __name__,
    title="Reformer",
    summary=(
        "Tokens are sorted by a random hash, which is usually equal for vectors of similar direction. Each token "
        "attends only to tokens near it in this order."
    ),
    formula=r"A_{ij} = \operatorname{softmax}_{j \in P_i} \frac{q_i^\top q_j}{\lVert q_j \rVert},\quad "
    r"P_i = \bigcup_r \{j \ne i : c_r(i) - c_r(j) \in \{0, 1\}\},\quad "
    r"c_r = \text{chunk in the order of } \operatorname{argmax}\,[x R_r; -x R_r]",
    complexity="m n (c d + log n)",
    params=ReformerParams,
    cross_reason="queries and keys are sorted together by their hash, so they must come from one sequence.",
    reference_name="shared-QK softmax",
    random=True,
    note="Reformer uses the queries also as keys and ignores the given keys. Its errors are therefore measured "
    "against softmax that does the same (shared-QK softmax). In both, the logit of token i for another token j "
    "is q_i·q_j/|q_j|, where q_i is the query of token i. A token attends to itself only if it can attend to no "
    "other token. Tokens with the same hash form a bucket. With a causal mask, every bucket is cut into chunks "
    "of its own. Without a mask, the sorted list of all tokens is cut into chunks, so a chunk can contain tokens "
    "of several buckets.",
    source=Paper("Reformer: The Efficient Transformer", 2020, "https://arxiv.org/abs/2001.04451"),
)
