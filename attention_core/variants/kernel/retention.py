"""Retention: linear attention that forgets, each similarity fading by γ with every token of distance.

Plain linear attention adds up the past for ever; here the sums shrink by γ before a token is added, and γ = 1 is
linear attention itself. RetNet divides a row by at least 1, so that little similarity stays little; here each row is
divided by its sum, as in all kernel variants. Where nothing is causal, later tokens fade alike: one pass forth, one
back, and the token itself, met by both, counts once.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK, State, divided, empty_state, fold, with_ones
from attention_core.ops.linear.even_decay import decayed_attention, decayed_cost
from attention_core.ops.linear.features import MAPS, Features
from attention_core.ops.linear.kernel import similarities
from attention_core.ops.linear.scans import by_chunks, running_max
from attention_core.ops.linear.triangle import rises_far
from attention_core.ops.softmax.masked import rows_over_sum, widened
from attention_core.variant import Cost, Decoder, Paper, Params, SpecialCase, Variant, param


@dataclass(frozen=True, kw_only=True)
class RetentionParams(Params):
    """Settings of retention."""

    decay: float = param(
        0.9,
        low=0.1,
        high=1.0,
        step=0.005,
        help="What is left of a token's weight at each step of distance; 1 forgets nothing.",
    )
    feature_map: str = param(
        "elu+1",
        choices=(*MAPS, "exp"),
        help="What makes the entries of queries and keys positive before they are multiplied.",
    )
    mode: str = param(
        "chunked",
        choices=("chunked", "recurrent"),
        help="How the causal form is computed: by chunks of tokens or token by token. The answer is one.",
    )


def faded(n: int, p: RetentionParams, like: Tensor) -> Tensor:
    """``-i log γ`` for ``i = 1..n``, ``[n, 1]``: what a similarity's logarithm loses over i tokens."""
    return -math.log(p.decay) * torch.arange(1, n + 1, dtype=like.dtype, device=like.device).unsqueeze(-1)


@torch.no_grad()
def peaks(k: Tensor, p: RetentionParams, *, causal: bool, start: Tensor | None = None) -> Tensor:
    """The largest faded key of each feature as every token sees it, a logarithm, ``[..., n, d]``; it cancels in a row.

    Only ``exp`` needs it to stay in range: for the other maps it is 0, ``[n, 1]``.

    Args:
        k: keys, ``[..., n, d]``.
        p: the settings.
        causal: whether a token sees the keys up to its own only.
        start: the peak of the token before the first, ``[..., 1, d]``, to go on from.
    """
    k = widened(k)
    if p.feature_map != "exp":
        return k.new_zeros(k.shape[-2], 1)
    fade = faded(k.shape[-2], p, k)
    peak = running_max(k + fade) - fade
    if start is not None:
        peak = torch.maximum(peak, start - fade)
    return peak if causal else torch.maximum(peak, (running_max(k.flip(-2) + fade) - fade).flip(-2))


def features(q: Tensor, k: Tensor, peak: Tensor, p: RetentionParams) -> Features:
    """``φ(q)`` and ``φ(k)`` with a reference that rises by ``-log γ`` per token, from ``peak`` before the first.

    Counted from the first token of a long text it would lose its digits, and ``γ^n`` may be far below the smallest
    number there is: so each chunk counts anew. Rows of ``exp`` are up to a factor. With peaks of both directions the
    features serve backwards as well.
    """
    q, k = widened(q), widened(k)
    reference = peak + faded(q.shape[-2], p, q)
    if p.feature_map == "exp":
        return Features(in_range(q, peak)[1], (k - peak).exp_(), reference)
    phi = MAPS[p.feature_map]
    return Features(phi(q), phi(k), reference)


def weights(q: Tensor, k: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """``γ^|i-j| φ(q_i)·φ(k_j)``, each row divided by its sum, ``[..., n, n]``."""
    # In float64, where even the last token's distance from the first is a number of many digits.
    q_wide, k_wide = q.double(), k.double()
    peak = peaks(k_wide, p, causal=causal)  # [..., n, d]
    similarity = similarities(features(q_wide, k_wide, peak, p), causal=True)  # j <= i, [..., n, n]
    if not causal:
        after = similarities(features(q_wide.flip(-2), k_wide.flip(-2), peak.flip(-2), p), causal=True)
        similarity = similarity + after.flip(-2, -1).triu(1)
    return rows_over_sum(similarity).to(q.dtype)


class Summed(NamedTuple):
    """A chunk's sums over itself and the tokens before.

    Attributes:
        sums: the normaliser last, ``[..., c, d_v + 1]``, each row up to a factor.
        row: the logarithm of what a row is over, ``[..., c, 1]``; None for zero.
        features: those of the chunk.
    """

    sums: Tensor
    row: Tensor | None
    features: Features


def summed(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Summed, State]:
    """A chunk to its sums, and the next state, as its last token sees it: there the next chunk's count begins."""
    values, before, row = with_ones(widened(v)), state.reference, None
    assert before is not None
    if p.feature_map == "exp":
        fade = faded(k.shape[-2], p, values)
        log = widened(k) + fade
        with torch.no_grad():
            reference = torch.maximum(before, log.amax(-2, keepdim=True))
        if not rises_far(torch.maximum(before, log[..., :1, :]), reference):
            # One reference serves all tokens.
            row, queries = in_range(q, reference)
            f = Features(queries, (log - reference).exp_())
            sums, after = fold(State(state.sums * (before - reference).exp().mT, None), f, values)
            return Summed(sums, row - fade, f), State(after.sums, reference - fade[-1:])
    peak = peaks(k, p, causal=True, start=before)
    f = features(q, k, peak, p)
    if p.feature_map == "exp":
        row = (widened(q).detach() + peak).amax(-1, keepdim=True)
    sums, after = fold(state, f, values)
    return Summed(sums, row, f), State(after.sums, peak[..., -1:, :])


def in_range(q: Tensor, peak: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithm of each row's largest entry of ``e^(q + peak)``, and the rows over these."""
    log = widened(q) + peak
    row = log.detach().amax(-1, keepdim=True)
    return row, log.sub_(row).exp_()


def past(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """A chunk of the causal form to its outputs."""
    chunk, state = summed(state, q, k, v, p)
    return divided(chunk.sums).to(v.dtype), state


def forth(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """A chunk to its sums over itself and the tokens before, with the logarithm of what rows are over as a column."""
    (sums, row, _), state = summed(state, q, k, v, p)
    return sums if row is None else torch.cat([sums, row], -1), state


def back(state: State, q: Tensor, k: Tensor, v: Tensor, before: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """A chunk, last token first, to its outputs: the sums of ``forth`` and those over the tokens after."""
    (sums, row, f), state = summed(state, q, k, v, p)
    after = sums - (f.q * f.k).sum(-1, keepdim=True) * with_ones(widened(v))
    if row is not None:
        before, other = before[..., :-1], before[..., -1:]
        larger = torch.maximum(row, other)
        before, after = before * (other - larger).exp(), after * (row - larger).exp()
    return divided(before + after).to(v.dtype), state


def attend(q: Tensor, k: Tensor, v: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """The running sums, forth and, unless causal, back."""
    if causal and fades_evenly(p):
        return decayed_attention(MAPS[p.feature_map], q, k, v, decay=p.decay)
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    walk = partial(by_chunks, size=chunk_size(p, causal=causal))
    if causal:
        return walk(partial(past, p=p), state, q, k, v)[0]
    before, _ = walk(partial(forth, p=p), state, q, k, v)
    # Outputs take the place of the sums they are made of.
    into = before[..., : v.shape[-1]] if before.dtype == v.dtype else None
    return walk(partial(back, p=p), state, q, k, v, before, reverse=True, into=into)[0]


def fades_evenly(p: RetentionParams) -> bool:
    """Whether the causal form goes by chunks in which all that fades is the same: ``exp`` has peaks of its own."""
    return p.mode == "chunked" and p.feature_map != "exp"


def chunk_size(p: RetentionParams, *, causal: bool) -> int:
    """Tokens per chunk."""
    return 1 if causal and p.mode == "recurrent" else CHUNK


def init_state(q: Tensor, v: Tensor, p: RetentionParams) -> State:
    """The state before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    return empty_state(q.shape[-1], widened(v), normalise=True, referenced=True)


def step(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """One token, ``[..., d]`` and ``[..., d_v]``, to its output and the next state."""
    q, k, v = (x.unsqueeze(-2) for x in (q, k, v))
    out, state = past(state, q, k, v, p)
    return out.squeeze(-2), state


def cost(n: int, d: int, p: RetentionParams, *, causal: bool) -> Cost:
    """Into the state, out of it and what happens inside a chunk; twice unless causal."""
    if causal and fades_evenly(p):
        return Cost(*decayed_cost(n, d, d))
    c, columns = min(n, chunk_size(p, causal=causal)), d + 1
    adds = (n // c * c**2 + (n % c) ** 2) * (d + columns) + 2 * n * d * columns
    held = c * (4 * d + 2 * c + columns) + 4 * d * columns  # a chunk and its states
    if causal:
        return Cost(multiply_adds=adds, peak_elements=(n - c) * d + held)
    return Cost(multiply_adds=2 * adds, peak_elements=n * columns + held + 5 * c * d)


VARIANT = Variant(
    key="retention",
    title="Retention",
    family="kernel",
    summary="Linear attention with forgetting: a token's weight fades by the same share at every step of distance.",
    formula=r"A_{ij} = \frac{\gamma^{|i-j|}\, \varphi(q_i)^\top \varphi(k_j)}"
    r"{\sum_l \gamma^{|i-l|}\, \varphi(q_i)^\top \varphi(k_l)}",
    complexity="n d²",
    params=RetentionParams,
    weights=weights,
    attend=attend,
    cost=cost,
    zero_rows=True,
    decoder=Decoder(init_state, step),
    note="A row is zero where no product of its features is above zero: with relu, where query and keys have no "
    "positive entry in common; else, where exponentials are below the smallest number that float32 holds.",
    source=Paper(
        "Retentive Network: A Successor to Transformer for Large Language Models",
        2023,
        "https://arxiv.org/abs/2307.08621",
    ),
    special_cases=(SpecialCase("linear", {"decay": 1.0}, shared=("feature_map",)),),
)
