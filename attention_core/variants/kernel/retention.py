"""Retention: linear attention in which each similarity is multiplied by γ once per token between key and query.

In plain linear attention, sums over earlier tokens do not decay. Here, they are multiplied by γ before each token is
added; γ = 1 gives linear attention. RetNet divides a row by at least 1, so small similarities give a small output.
Here, each row is divided by its sum, as in all kernel variants. Without a causal mask, later tokens decay in the same
way: the sums of a forward pass and a backward pass are added, and the token itself counts once.
"""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK, State, divided, empty_state, fold, with_ones
from attention_core.ops.linear.even_decay import decayed_attention, decayed_cost
from attention_core.ops.linear.features import MAPS, Features, exceeds_spread, similarities
from attention_core.ops.linear.scans import by_chunks, running_max
from attention_core.ops.softmax.masked import at_least_float32, rows_over_sum
from attention_core.variant import Cost, Decoder, Paper, Params, SpecialCase, Variant, param


class RetentionParams(Params):
    """Settings of retention."""

    decay: float = param(
        0.9,
        low=0.1,
        high=1.0,
        step=0.005,
        help="γ, the factor by which each token of distance between query and key multiplies the weight. 1 means no "
        "decay.",
    )
    feature_map: str = param(
        "elu+1",
        choices=(*MAPS, "exp"),
        help="Function that turns each query and each key into a vector of features, which are never negative.",
    )
    mode: str = param(
        "chunked",
        choices=("chunked", "recurrent"),
        help="How the result is computed with a causal mask. chunked: for a chunk of tokens at a time. recurrent: "
        "for one token at a time. Both give the same result.",
    )


def definition(q: Tensor, k: Tensor, v: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """Multiply the products of features by ``γ^|i-j|``, then divide each row by its sum."""
    phi = {**MAPS, "exp": torch.exp}[p.feature_map]
    position = torch.arange(q.shape[-2]).to(q)
    distance = (position[:, None] - position).abs()  # [n, n]
    similarity = p.decay**distance * (phi(q) @ phi(k).mT)
    similarity = similarity.tril() if causal else similarity
    return rows_over_sum(similarity) @ v


def log_decay(n: int, p: RetentionParams, like: Tensor) -> Tensor:
    """Return ``-i log γ`` for ``i = 1..n``, ``[n, 1]``: the decrease of a log similarity over i tokens."""
    return -math.log(p.decay) * torch.arange(1, n + 1, dtype=like.dtype, device=like.device).unsqueeze(-1)


@torch.no_grad()
def peaks(k: Tensor, p: RetentionParams, *, causal: bool, start: Tensor | None = None) -> Tensor:
    """Return the logarithm of the largest decayed key of each feature, ``[..., n, d]``, for every query position.

    These peaks cancel in a row. Only ``exp`` needs them to stay in range: for other maps they are 0, ``[n, 1]``.

    Args:
        k: keys, ``[..., n, d]``.
        p: the settings.
        causal: whether a query attends only to keys up to its own position.
        start: the peak at the token before the first, ``[..., 1, d]``, if there is an earlier token.
    """
    k = at_least_float32(k)
    if p.feature_map != "exp":
        return k.new_zeros(k.shape[-2], 1)
    decay = log_decay(k.shape[-2], p, k)
    peak = running_max(k + decay) - decay
    if start is not None:
        peak = torch.maximum(peak, start - decay)
    return peak if causal else torch.maximum(peak, (running_max(k.flip(-2) + decay) - decay).flip(-2))


def features(q: Tensor, k: Tensor, peak: Tensor, p: RetentionParams) -> Features:
    """Return ``φ(q)`` and ``φ(k)`` with a reference that increases by ``-log γ`` per token, starting from ``peak``.

    The reference restarts in each chunk, because over a long text it would be rounded too coarsely and ``γ^n`` would
    underflow. With ``exp``, each row is known up to a factor. If ``peak`` covers both directions, the features are
    also valid for the reverse pass over the text.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    reference = peak + log_decay(q.shape[-2], p, q)
    if p.feature_map == "exp":
        return Features(in_range(q, peak)[1], (k - peak).exp_(), reference)
    phi = MAPS[p.feature_map]
    return Features(phi(q), phi(k), reference)


def weights(q: Tensor, k: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """Return ``γ^|i-j| φ(q_i)·φ(k_j)``, each row divided by its sum, ``[..., n, n]``."""
    # In float64, because ``features`` adds -log γ per token to ``peak``. Over a long text, this reference grows so
    # large that float32 would round it too coarsely.
    q_wide, k_wide = q.double(), k.double()
    peak = peaks(k_wide, p, causal=causal)  # [..., n, d]
    similarity = similarities(features(q_wide, k_wide, peak, p), causal=True)  # j <= i, [..., n, n]
    if not causal:
        after = similarities(features(q_wide.flip(-2), k_wide.flip(-2), peak.flip(-2), p), causal=True)
        similarity = similarity + after.flip(-2, -1).triu(1)
    return rows_over_sum(similarity).to(q.dtype)


class Summed(NamedTuple):
    """The sums of a chunk's queries over the chunk and the tokens before it.

    Attributes:
        sums: sums of values, then the normaliser, ``[..., c, d_v + 1]``, each row up to a factor.
        row: the logarithm of that factor, ``[..., c, 1]``; None for zero.
        features: the features of the chunk.
    """

    sums: Tensor
    row: Tensor | None
    features: Features


def summed(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Summed, State]:
    """Return the sums of a chunk and the next state, whose reference is that of the chunk's last token."""
    values, before, row = with_ones(at_least_float32(v)), state.reference, None
    assert before is not None
    if p.feature_map == "exp":
        decay = log_decay(k.shape[-2], p, values)
        log = at_least_float32(k) + decay
        with torch.no_grad():
            reference = torch.maximum(before, log.amax(-2, keepdim=True))
        if not exceeds_spread(torch.maximum(before, log[..., :1, :]), reference):
            # The reference increases by at most ``SPREAD`` within the chunk, so the last one is used for all tokens.
            row, queries = in_range(q, reference)
            f = Features(queries, (log - reference).exp_())
            sums, after = fold(State(state.sums * (before - reference).exp().mT, None), f, values)
            return Summed(sums, row - decay, f), State(after.sums, reference - decay[-1:])
    peak = peaks(k, p, causal=True, start=before)
    f = features(q, k, peak, p)
    if p.feature_map == "exp":
        row = (at_least_float32(q).detach() + peak).amax(-1, keepdim=True)
    sums, after = fold(state, f, values)
    return Summed(sums, row, f), State(after.sums, peak[..., -1:, :])


def in_range(q: Tensor, peak: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logarithm of the largest entry of ``e^(q + peak)`` in each row, and the rows divided by that entry."""
    log = at_least_float32(q) + peak
    row = log.detach().amax(-1, keepdim=True)
    return row, log.sub_(row).exp_()


def causal_chunk(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """Return the outputs of a chunk of the causal form, and the next state."""
    chunk, state = summed(state, q, k, v, p)
    return divided(chunk.sums).to(v.dtype), state


def forward(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """Return a chunk's sums over its own and earlier tokens, with the logarithms of row factors as a last column."""
    (sums, row, _), state = summed(state, q, k, v, p)
    return sums if row is None else torch.cat([sums, row], -1), state


def reverse(state: State, q: Tensor, k: Tensor, v: Tensor, before: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """Return the outputs of a chunk, last token first: the sums of ``forward`` plus those over later tokens."""
    (sums, row, f), state = summed(state, q, k, v, p)
    after = sums - (f.q * f.k).sum(-1, keepdim=True) * with_ones(at_least_float32(v))
    if row is not None:
        before, other = before[..., :-1], before[..., -1:]
        larger = torch.maximum(row, other)
        before, after = before * (other - larger).exp(), after * (row - larger).exp()
    return divided(before + after).to(v.dtype), state


def attend(q: Tensor, k: Tensor, v: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """Return the outputs from running sums in the order of the text and, unless causal, in reverse order too."""
    if has_even_decay(p, causal=causal):
        return decayed_attention(MAPS[p.feature_map], q, k, v, decay=p.decay, causal=causal)
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    walk = partial(by_chunks, size=chunk_size(p, causal=causal))
    if causal:
        return walk(partial(causal_chunk, p=p), state, q, k, v)[0]
    before, _ = walk(partial(forward, p=p), state, q, k, v)
    # ``before`` holds the sums of the forward pass. The reverse pass adds its own sums to them and stores the outputs
    # in their memory, if the type is the same.
    into = before[..., : v.shape[-1]] if before.dtype == v.dtype else None
    return walk(partial(reverse, p=p), state, q, k, v, before, reverse=True, into=into)[0]


def has_even_decay(p: RetentionParams, *, causal: bool) -> bool:
    """Return whether chunks with the same decay for all features are used; the peaks of ``exp`` differ by feature."""
    return p.feature_map != "exp" and not (causal and p.mode == "recurrent")


def chunk_size(p: RetentionParams, *, causal: bool) -> int:
    """Return the number of tokens per chunk."""
    return 1 if causal and p.mode == "recurrent" else CHUNK


def init_state(q: Tensor, v: Tensor, p: RetentionParams) -> State:
    """Return the state before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    return empty_state(q.shape[-1], at_least_float32(v), normalise=True, referenced=True)


def step(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """Return the output of one token, ``[..., d_v]``, and the next state."""
    q, k, v = (x.unsqueeze(-2) for x in (q, k, v))
    out, state = causal_chunk(state, q, k, v, p)
    return out.squeeze(-2), state


def cost(n: int, d: int, p: RetentionParams, *, causal: bool) -> Cost:
    """Return the cost of the products into the state, out of it and within a chunk; twice unless causal."""
    if has_even_decay(p, causal=causal):
        return Cost(*decayed_cost(n, d, d, causal=causal))
    c, columns = min(n, chunk_size(p, causal=causal)), d + 1
    adds = (n // c * c**2 + (n % c) ** 2) * (d + columns) + 2 * n * d * columns
    held = c * (4 * d + 2 * c + columns) + 4 * d * columns  # a chunk and its states
    if causal:
        return Cost(multiply_adds=adds, peak_elements=(n - c) * d + held)
    return Cost(multiply_adds=2 * adds, peak_elements=n * columns + held + 5 * c * d)


VARIANT = Variant(
    __name__,
    title="Retention",
    summary="Linear attention in which each token of distance between query and key multiplies the weight by a factor "
    "γ, so that the weights decay exponentially with distance.",
    formula=r"A_{ij} = \frac{\gamma^{|i-j|}\, \varphi(q_i)^\top \varphi(k_j)}"
    r"{\sum_l \gamma^{|i-l|}\, \varphi(q_i)^\top \varphi(k_l)}",
    complexity="n d²",
    params=RetentionParams,
    cross_reason="the weights depend on the distance between query and key, which is defined only within one sequence.",
    zero_rows=True,
    decoder=Decoder(init_state, step),
    note="All weights of a row are zero if the query's features have a zero dot product with the features of every "
    "key. With relu, this happens if the query and each key have no positive component in common. With other feature "
    "maps, it happens only if exponentials are too small for float32.",
    source=Paper(
        "Retentive Network: A Successor to Transformer for Large Language Models",
        2023,
        "https://arxiv.org/abs/2307.08621",
    ),
    special_cases=(SpecialCase("linear", {"decay": 1.0}, shared=("feature_map",)),),
)
