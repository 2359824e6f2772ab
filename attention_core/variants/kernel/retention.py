"""Retention: linear attention whose similarities are multiplied by a factor γ per token of distance to the query.

In plain linear attention, sums over earlier tokens do not decay. Here, they are multiplied by γ before each token is
added; γ = 1 gives linear attention. RetNet divides a row by at least 1, so small similarities give a small output.
Here, each row is divided by its sum, as in all kernel variants. Without a causal mask, later tokens decay in the same
way. One pass sums over the tokens up to the query, and a pass in reverse order over the later tokens. Both sums are
added.
"""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK, State, apply_normaliser, empty_state, scan_step, with_ones
from attention_core.ops.linear.even_decay import decayed_attention, decayed_cost
from attention_core.ops.linear.features import FEATURE_MAPS, Features, exceeds_spread, similarities
from attention_core.ops.linear.scans import mode_setting, running_max, scan_chunks, token_step
from attention_core.ops.softmax.masked import at_least_float32, normalise_rows
from attention_core.variant import Cost, Decoder, Paper, Params, SpecialCase, Variant, param


class RetentionParams(Params):
    """Settings of retention."""

    decay: float = param(
        0.9,
        low=0.1,
        high=1.0,
        step=0.005,
        help="Decay factor γ: each weight is multiplied by γ to the power of the distance between query and key. 1 "
        "means no decay.",
    )
    feature_map: str = param(
        "elu+1",
        choices=(*FEATURE_MAPS, "exp"),
        help="Function that turns each query and each key into a vector of features, which are never negative.",
    )
    mode: str = mode_setting()


def definition(q: Tensor, k: Tensor, v: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """Compute ``γ^|i-j| φ(q_i)·φ(k_j)``, each row divided by its sum, times v, ``[..., n, d_v]``."""
    phi = {**FEATURE_MAPS, "exp": torch.exp}[p.feature_map]
    position = torch.arange(q.shape[-2]).to(q)
    distance = (position[:, None] - position).abs()  # [n, n]
    similarity = p.decay**distance * (phi(q) @ phi(k).mT)
    similarity = similarity.tril() if causal else similarity
    return normalise_rows(similarity) @ v


def log_decays(n: int, p: RetentionParams, like: Tensor) -> Tensor:
    """Return ``-i log γ`` for i = 1..n, ``[n, 1]``: the decrease of a similarity's logarithm after i tokens."""
    return -math.log(p.decay) * torch.arange(1, n + 1, dtype=like.dtype, device=like.device).unsqueeze(-1)


@torch.no_grad()
def peaks(k: Tensor, p: RetentionParams, *, causal: bool, earlier_peak: Tensor | None = None) -> Tensor:
    """Return the logarithm of the largest decayed key feature, for each query and feature, ``[..., n, d]``.

    The peaks scale numerator and denominator of a row equally, so they cancel. Only the feature map ``exp`` needs
    peaks, to avoid overflow. For other maps, they are 0, ``[n, 1]``.

    Args:
        k: keys, ``[..., n, d]``.
        p: the settings.
        causal: whether a query attends only to keys up to its own position.
        earlier_peak: the peak at the token before the first, ``[..., 1, d]``, if there is an earlier token.
    """
    k = at_least_float32(k)
    if p.feature_map != "exp":
        return k.new_zeros(k.shape[-2], 1)
    decay = log_decays(k.shape[-2], p, k)
    peak = running_max(k + decay) - decay
    if earlier_peak is not None:
        peak = torch.maximum(peak, earlier_peak - decay)
    return peak if causal else torch.maximum(peak, (running_max(k.flip(-2) + decay) - decay).flip(-2))


def features(q: Tensor, k: Tensor, peak: Tensor, p: RetentionParams) -> Features:
    """Return ``φ(q)`` and ``φ(k)`` with a reference that increases by ``-log γ`` per token, starting from ``peak``.

    The reference is the logarithm that is subtracted from each feature. It restarts in each chunk, because over a long
    text it would be rounded too coarsely and ``γ^n`` would underflow. With ``exp``, each row is known up to a factor.
    If ``peak`` covers both directions, the features are also valid for the reverse pass over the text.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    reference = peak + log_decays(q.shape[-2], p, q)
    if p.feature_map == "exp":
        return Features(scaled_exponentials(q, peak)[1], (k - peak).exp_(), reference)
    phi = FEATURE_MAPS[p.feature_map]
    return Features(phi(q), phi(k), reference)


def weights(q: Tensor, k: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """Return ``γ^|i-j| φ(q_i)·φ(k_j)``, each row divided by its sum, ``[..., n, n]``."""
    # The matrix is computed in float64, because ``features`` adds -log γ per token to ``peak``. Over a long text, this
    # sum grows so large that float32 would round it too coarsely.
    q_wide, k_wide = q.double(), k.double()
    peak = peaks(k_wide, p, causal=causal)  # [..., n, d]
    similarity = similarities(features(q_wide, k_wide, peak, p), causal=True)  # j <= i, [..., n, n]
    if not causal:
        later = similarities(features(q_wide.flip(-2), k_wide.flip(-2), peak.flip(-2), p), causal=True)
        similarity = similarity + later.flip(-2, -1).triu(1)
    return normalise_rows(similarity).to(q.dtype)


class ChunkSums(NamedTuple):
    """The sums of a chunk's queries over the chunk and the tokens before it.

    Attributes:
        sums: sums of values, then the normaliser, ``[..., c, d_v + 1]``, each row up to a factor.
        row_log: the logarithm of the row's factor, ``[..., c, 1]``; None if all factors are 1.
        features: the features of the chunk.
    """

    sums: Tensor
    row_log: Tensor | None
    features: Features


def chunk_sums(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[ChunkSums, State]:
    """Return the sums of a chunk, and the next state with the reference of the chunk's last token."""
    values, previous, row_log = with_ones(at_least_float32(v)), state.reference, None
    assert previous is not None
    if p.feature_map == "exp":
        decay = log_decays(k.shape[-2], p, values)
        log = at_least_float32(k) + decay
        with torch.no_grad():
            reference = torch.maximum(previous, log.amax(-2, keepdim=True))
        if not exceeds_spread(torch.maximum(previous, log[..., :1, :]), reference):
            # A feature's reference, its largest logarithm so far, is subtracted before exp. It increases by at most
            # ``SPREAD`` within the chunk, so its value at the last token is used for all tokens of the chunk.
            row_log, queries = scaled_exponentials(q, reference)
            f = Features(queries, (log - reference).exp_())
            sums, new_state = scan_step(State(state.sums * (previous - reference).exp().mT, None), f, values)
            return ChunkSums(sums, row_log - decay, f), State(new_state.sums, reference - decay[-1:])
    peak = peaks(k, p, causal=True, earlier_peak=previous)
    f = features(q, k, peak, p)
    if p.feature_map == "exp":
        row_log = (at_least_float32(q).detach() + peak).amax(-1, keepdim=True)
    sums, new_state = scan_step(state, f, values)
    return ChunkSums(sums, row_log, f), State(new_state.sums, peak[..., -1:, :])


def scaled_exponentials(q: Tensor, peak: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logarithm of the largest entry of ``e^(q + peak)`` in each row, and the rows divided by that entry."""
    log = at_least_float32(q) + peak
    row_log = log.detach().amax(-1, keepdim=True)
    return row_log, log.sub_(row_log).exp_()


def attend_chunk(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """Return the outputs of a chunk of the causal form, and the next state."""
    chunk, state = chunk_sums(state, q, k, v, p)
    return apply_normaliser(chunk.sums).to(v.dtype), state


def forward_chunk(state: State, q: Tensor, k: Tensor, v: Tensor, p: RetentionParams) -> tuple[Tensor, State]:
    """Return the sums of ``chunk_sums``, with ``row_log`` (if not None) as the last column, and the next state."""
    (sums, row_log, _), state = chunk_sums(state, q, k, v, p)
    return sums if row_log is None else torch.cat([sums, row_log], -1), state


def reverse_chunk(
    state: State, q: Tensor, k: Tensor, v: Tensor, earlier: Tensor, p: RetentionParams
) -> tuple[Tensor, State]:
    """Return the outputs of a chunk of the reversed text, from the sums over later tokens plus ``earlier``.

    ``earlier`` is the result of ``forward_chunk`` for the same tokens.
    """
    (sums, row_log, f), state = chunk_sums(state, q, k, v, p)
    later = sums - (f.q * f.k).sum(-1, keepdim=True) * with_ones(at_least_float32(v))
    if row_log is not None:
        earlier, earlier_log = earlier[..., :-1], earlier[..., -1:]
        larger = torch.maximum(row_log, earlier_log)
        earlier, later = earlier * (earlier_log - larger).exp(), later * (row_log - larger).exp()
    return apply_normaliser(earlier + later).to(v.dtype), state


def attend(q: Tensor, k: Tensor, v: Tensor, p: RetentionParams, *, causal: bool) -> Tensor:
    """Return the outputs from running sums in the order of the text and, unless causal, in reverse order too."""
    if has_even_decay(p, causal=causal):
        return decayed_attention(FEATURE_MAPS[p.feature_map], q, k, v, decay=p.decay, causal=causal)
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    scan = partial(scan_chunks, size=chunk_size(p, causal=causal))
    if causal:
        return scan(partial(attend_chunk, p=p), state, q, k, v)[0]
    earlier, _ = scan(partial(forward_chunk, p=p), state, q, k, v)
    # ``earlier`` holds each query's sums over its own and earlier tokens. The pass in reverse order adds the sums over
    # later tokens and stores the outputs in the memory of ``earlier``, if both have the same type.
    result = earlier[..., : v.shape[-1]] if earlier.dtype == v.dtype else None
    return scan(partial(reverse_chunk, p=p), state, q, k, v, earlier, reverse=True, result=result)[0]


def has_even_decay(p: RetentionParams, *, causal: bool) -> bool:
    """Return whether ``decayed_attention`` can be used.

    It needs the same decay for all features, so it cannot be used for ``exp``, which scales each feature differently.
    The causal mode "recurrent" does not use it either.
    """
    return p.feature_map != "exp" and not (causal and p.mode == "recurrent")


def chunk_size(p: RetentionParams, *, causal: bool) -> int:
    """Return the number of tokens per chunk."""
    return 1 if causal and p.mode == "recurrent" else CHUNK


def init_state(q: Tensor, v: Tensor, p: RetentionParams) -> State:
    """Return the state before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    return empty_state(q.shape[-1], at_least_float32(v), normalise=True, references=q.shape[-1])


step = token_step(attend_chunk)


def cost(n: int, d: int, p: RetentionParams, *, causal: bool) -> Cost:
    """Return the cost: products with the state and within a chunk, for both directions of the text unless causal."""
    if has_even_decay(p, causal=causal):
        return Cost(*decayed_cost(n, d, d, causal=causal))
    c, columns = min(n, chunk_size(p, causal=causal)), d + 1
    adds = (n // c * c**2 + (n % c) ** 2) * (d + columns) + 2 * n * d * columns
    block_elements = c * (4 * d + 2 * c + columns) + 4 * d * columns  # tensors of one chunk, and its states
    if causal:
        return Cost(multiply_adds=adds, peak_elements=(n - c) * d + block_elements)
    return Cost(multiply_adds=2 * adds, peak_elements=n * columns + block_elements + 5 * c * d)


VARIANT = Variant(
    __name__,
    title="Retention",
    summary="Linear attention in which weights decay exponentially with distance: each is multiplied by γ (at most "
    "1) to the power of the distance between query and key.",
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
