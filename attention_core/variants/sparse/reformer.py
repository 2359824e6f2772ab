"""Reformer attention: a random hash brings similar tokens together, and each looks among those only.

Queries and keys are one and the same (shared QK): the queries, at unit length, serve as keys, and the given keys are
ignored. Logits are ``q_i · q_j / |q_j|`` without a further ``1/√d``, as in the original. A token sees itself only if it
sees nothing else. Every round hashes each token into a bucket, sorts by (bucket, position) and cuts into chunks of c,
wherever buckets end; a token sees its chunk and the one before. The first chunk has none before it, as in the paper
(its implementations let it look at the last one). What any round finds counts, each pair once.

Causal, hiding later keys is not enough: a later token shifts all chunks behind it in the sorted order, and a longer
text has more buckets, so the future would decide which past a token sees. So each bucket is cut into chunks by itself,
which earlier tokens alone decide, and stretches of positions are hashed each for its own length: up to position 2c all
is seen, up to 8c there are 4 buckets, up to 32c 16, and so on. No output moves when the text goes on.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops import lsh
from attention_core.ops.softmax.masked import masked_softmax, widened
from attention_core.variant import Cost, Paper, Params, Variant, param


@dataclass(frozen=True, kw_only=True)
class ReformerParams(Params):
    """Settings of Reformer attention."""

    bucket_size: int = param(
        8,
        low=2,
        high=512,
        scale="log",
        help="Tokens in a chunk, and about how many share a bucket; each round shows a token at most twice as many.",
    )
    rounds: int = param(
        2, low=1, high=16, help="How often the tokens are hashed: what one round misses, another may find.", budget=True
    )
    seed: int = param(0, low=0, high=9999, help="Another number draws other directions to hash by.")


def stretches(n: int, p: ReformerParams, *, causal: bool) -> list[tuple[int, int, tuple[int, ...]]]:
    """Queries ``start <= i < stop`` and the sizes of the hashes that they and all tokens before ``stop`` go through."""
    c = p.bucket_size
    if not causal:
        return [(0, n, lsh.hash_sizes(max(2, n / c), max(4, c)))]
    found, start, stop = [], 0, 2 * c
    while start < n:
        found.append((start, min(stop, n), lsh.hash_sizes(stop / (2 * c), max(4, c))))
        start, stop = stop, 4 * stop
    return found


def hashed(q: Tensor, stop: int, sizes: tuple[int, ...], p: ReformerParams) -> list[Tensor]:
    """Each round's bucket of the tokens before ``stop``, ``int64 [..., stop]``: ``argmax [q R; -q R]``."""
    return [lsh.hash_buckets(q[..., :stop, :], sizes, p.seed, number) for number in range(p.rounds)]


def found(bucket: Tensor, same: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """The pairs that a round finds, ``bool [..., n, n]``, from its buckets ``[..., n]`` and who shares one."""
    # Causal, each bucket is cut by itself; else the order by (bucket, position) is, wherever buckets end.
    place = same.tril(-1).sum(-1) if causal else lsh.order(lsh.order(bucket))  # [..., n]
    chunk = place // p.bucket_size
    behind = chunk.unsqueeze(-1) - chunk.unsqueeze(-2)  # [..., n, n]
    near = (behind == 0) | (behind == 1)
    return near & same if causal else near


def others_first(seen: Tensor, *, causal: bool) -> Tensor:
    """The pairs without those of a token with itself, except for tokens that see no other, ``bool [..., n, n]``."""
    itself = torch.eye(seen.shape[-1], dtype=torch.bool, device=seen.device)
    others = seen.tril(-1) if causal else seen & ~itself
    return others | (itself & ~others.any(-1, keepdim=True))


def near_and_alike(q: Tensor, p: ReformerParams, *, causal: bool) -> tuple[Tensor, Tensor]:
    """The pairs that some round finds, and the pairs of two tokens with a bucket in common, ``bool [..., n, n]``."""
    q, n = widened(q), q.shape[-2]
    near, alike = torch.zeros(2, *q.shape[:-1], n, dtype=torch.bool, device=q.device)
    for start, stop, sizes in stretches(n, p, causal=causal):
        for bucket in hashed(q, stop, sizes, p):
            same = bucket.unsqueeze(-1) == bucket.unsqueeze(-2)  # [..., stop, stop]
            near[..., start:stop, :stop] |= found(bucket, same, p, causal=causal)[..., start:, :]
            alike[..., start:stop, :stop] |= same[..., start:, :]
    itself = torch.eye(n, dtype=torch.bool, device=q.device)
    return others_first(near, causal=causal), alike.tril(-1) if causal else alike & ~itself


def pattern(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """The pairs that some round finds, ``bool [..., n, n]``."""
    return near_and_alike(q, p, causal=causal)[0]


def primitives(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> dict[str, Tensor]:
    """Pairs that share a bucket, others of neighbouring places in the order, and lonely tokens with themselves."""
    near, alike = near_and_alike(q, p, causal=causal)
    itself = torch.eye(q.shape[-2], dtype=torch.bool, device=q.device)
    return {"bucket": near & alike, "chunk": near & ~alike & ~itself, "itself": near & itself}


def logits(q: Tensor) -> Tensor:
    """``q_i · q_j / |q_j|``, ``[..., n, n]``."""
    return q @ F.normalize(q, dim=-1).mT


def weights(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Softmax of the shared logits restricted to the pattern, ``[..., n, n]``; ``k`` is ignored."""
    return masked_softmax(logits(q), pattern(q, k, p, causal=causal))


def reference(q: Tensor, k: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """Softmax of the shared logits over every other token, ``[..., n, n]``: what more rounds come closer to."""
    shared = logits(widened(q))
    every = others_first(torch.ones_like(shared, dtype=torch.bool), causal=causal)
    return masked_softmax(shared, every).to(q.dtype)


def chunked(buckets: list[Tensor], sizes: tuple[int, ...], p: ReformerParams, *, causal: bool) -> list[lsh.Chunks]:
    """Each round's chunks, as places in a row: what finds the pairs without trying all n²."""
    if causal:
        return [lsh.bucket_chunks(bucket, math.prod(sizes), p.bucket_size) for bucket in buckets]
    return [lsh.sorted_chunks(bucket, p.bucket_size) for bucket in buckets]


def attend(q: Tensor, k: Tensor, v: Tensor, p: ReformerParams, *, causal: bool) -> Tensor:
    """The same from chunk to chunk: O(rounds n c d + n log n) time, O(n d) memory; ``k`` is ignored."""
    shared, values = widened(q), widened(v)
    keys = F.normalize(shared, dim=-1)
    outs = []
    for start, stop, sizes in stretches(q.shape[-2], p, causal=causal):
        rounds = chunked(hashed(shared, stop, sizes, p), sizes, p, causal=causal)
        seen = (x[..., :stop, :] for x in (shared, keys, values))
        outs.append(lsh.lsh_attention(*seen, rounds=rounds, causal=causal)[..., start:, :])
    return torch.cat(outs, -2).to(v.dtype)


def cost(n: int, d: int, p: ReformerParams, *, causal: bool) -> Cost:
    """The hash, and two products for every pair in a chunk and the one before; keys, outputs and sorted copies."""
    work = peak = 0
    for _, stop, sizes in stretches(n, p, causal=causal):
        size, runs = min(p.bucket_size, stop), math.prod(sizes) if causal else 1
        places, block = size * lsh.chunk_rows(stop, runs, size), lsh.largest_block(stop, runs, size)
        work += p.rounds * (stop * d * (sum(sizes) // 2) + 4 * places * size * d)
        held = stop * (d + 4 * p.rounds + 5) + (places + size) * (4 * d + p.rounds + 5)
        peak = max(peak, n * d + held + block * 3 // 2 + block // (2 * size) * d)
    return Cost(multiply_adds=work, peak_elements=peak)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: ReformerParams, *, causal: bool) -> dict[str, Tensor]:
    """What the rounds make of the tokens, ``int64 [..., rounds, n]`` (causal: the last stretch's), and what they miss.

    ``buckets``; ``order``, the tokens by bucket and position; ``chunks``; ``missed``, ``bool [..., n, n]``, pairs that
    share a bucket in some round and yet do not look; ``all_pairs``, ``[..., n, n]``, the same softmax over every pair.
    """
    q = widened(q)
    near, alike = near_and_alike(q, p, causal=causal)
    _, stop, sizes = stretches(q.shape[-2], p, causal=causal)[-1]
    each = hashed(q, stop, sizes, p)
    chunks, buckets = chunked(each, sizes, p, causal=causal), torch.stack(each, -2)
    return {
        "buckets": buckets,
        "order": lsh.order(buckets),
        "chunks": torch.stack([c.slot // c.size for c in chunks], -2),
        "missed": alike & ~near,
        "all_pairs": reference(q, k, p, causal=causal),
    }


VARIANT = Variant(
    key="reformer",
    title="Reformer",
    family="sparse",
    summary="A random hash sorts similar tokens next to each other, and each looks only at its neighbours there.",
    formula=r"A_{ij} = \operatorname{softmax}_{j \in P_i} \frac{q_i^\top q_j}{\lVert q_j \rVert},\quad "
    r"P_i = \bigcup_r \{j \ne i : c_r(i) - c_r(j) \in \{0, 1\}\},\quad "
    r"c_r = \text{chunk in the order of } \operatorname{argmax}\,[x R_r; -x R_r]",
    complexity="rounds n c d + n log n",
    params=ReformerParams,
    weights=weights,
    attend=attend,
    cost=cost,
    pattern=pattern,
    primitives=primitives,
    reference=reference,
    reference_name="shared-QK softmax",
    random=True,
    anatomy=anatomy,
    note="Queries serve as keys too and the given keys are ignored: its reference for error, shared-QK softmax, is "
    "softmax of its own logits q·q/|q| over all other tokens, not softmax of q·k. A token that finds no other attends "
    "to itself. With a causal mask each bucket is cut into chunks by itself.",
    source=Paper("Reformer: The Efficient Transformer", 2020, "https://arxiv.org/abs/2001.04451"),
)
