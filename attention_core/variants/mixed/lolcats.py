"""LoLCATs: softmax's exponentials within a window, linear attention beyond it, and one normaliser for both.

The exponentials are divided by the largest one in the window, so that adding a constant to a row's logits changes
nothing, as in softmax. The window moves with the query, and tokens that leave it are added to a state of constant size.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.causal_scan import apply_normaliser, causal_attention, causal_multiply_adds, with_ones
from attention_core.ops.linear.features import Features, both_softmaxes
from attention_core.ops.pattern.layouts import window_pairs
from attention_core.ops.softmax.masked import at_least_float32, causal_mask, distances, normalise_rows, scores
from attention_core.variant import TOKENS, Cost, Decoder, Paper, Params, SpecialCase, Variant, param

ROWS = 64
"""Queries whose windows are computed in one step."""


class LolcatsParams(Params):
    """Settings of LoLCATs."""

    window: int = param(
        16,
        low=0,
        high=1024,
        budget=True,
        help="Number w of tokens in the window with softmax attention, which ends at the query's own token. Without "
        "a causal mask, the window extends equally far to both sides. At 0, all attention is linear, as in Hedgehog. "
        "A window as long as the text gives softmax attention.",
    )


def exponentials(logits: Tensor, in_window: Tensor) -> Tensor:
    """Return ``e^logits`` where ``in_window`` is true, divided by the largest value of the row, and zero elsewhere.

    The shape is ``[..., rows, keys]``.
    """
    logits = logits.masked_fill(~in_window, -math.inf)
    return (logits - logits.amax(-1, keepdim=True).clamp_min(torch.finfo(logits.dtype).min)).exp()


def weights(q: Tensor, k: Tensor, p: LolcatsParams, *, causal: bool) -> Tensor:
    """Compute exponentials in the window and products of features beyond it, each row divided by its sum.

    The shape is ``[..., n, n]``.
    """
    n = q.shape[-2]
    in_window = distances(n, q.device).abs() < p.window
    beyond = ~in_window
    if causal:
        in_window, beyond = in_window & causal_mask(n, q.device), beyond & causal_mask(n, q.device)
    products = both_softmaxes(q) @ both_softmaxes(k).mT  # [..., n, n]
    return normalise_rows(exponentials(scores(q, k), in_window) + products * beyond)


def attend(q: Tensor, k: Tensor, v: Tensor, p: LolcatsParams, *, causal: bool) -> Tensor:
    """Compute the output ``[..., n, d_v]`` from sums over the window w and feature sums over all other keys.

    It takes O(n (w + d) d) time and O(n d) memory.
    """
    x = at_least_float32(q), at_least_float32(k), with_ones(at_least_float32(v))
    sums = torch.zeros_like(x[2]) if p.window == 0 else _window_sums(*x, window=p.window, causal=causal)
    if q.shape[-2] > p.window:
        features = both_softmaxes(x[0]), both_softmaxes(x[1]), x[2]
        sums = sums + _feature_sums(*features, window=p.window)
        # Later keys are added by the same function on the reversed text. If the window is 0, the first call already
        # counted the query's own token. The window 1 of the second call then leaves this token out.
        if not causal:
            later_sums = _feature_sums(*(y.flip(-2) for y in features), window=max(p.window, 1))
            sums = sums + later_sums.flip(-2)
    return apply_normaliser(sums).to(v.dtype)


def _window_sums(q: Tensor, k: Tensor, v: Tensor, *, window: int, causal: bool) -> Tensor:
    """Return ``Σ_j e_ij v_j``, ``[..., n, d_v]``, of ``exponentials`` e, over the keys j in the window of query i."""
    n, outs = q.shape[-2], []
    for start in range(0, n, ROWS):
        stop = min(start + ROWS, n)
        columns = slice(max(start - window + 1, 0), stop if causal else min(stop + window - 1, n))
        i = torch.arange(start, stop, device=q.device)[:, None]
        distance = i - torch.arange(columns.start, columns.stop, device=q.device)
        in_window = (distance < window) & (distance >= 0 if causal else distance > -window)
        outs.append(exponentials(scores(q[..., start:stop, :], k[..., columns, :]), in_window) @ v[..., columns, :])
    return torch.cat(outs, -2)


def _feature_sums(q: Tensor, k: Tensor, v: Tensor, *, window: int) -> Tensor:
    """Return ``Σ_j (q_i · k_j) v_j``, ``[..., n, d_v]``, of features q and k, over keys j ≤ i - ``window``."""
    n = q.shape[-2]
    if n <= window:
        return torch.zeros_like(v)
    keys, values = k[..., : n - window, :], v[..., : n - window, :]
    out = causal_attention(Features(q[..., window:, :], keys), values, mode="chunked", normalise=False)
    return F.pad(out, (0, 0, window, 0))


class State(NamedTuple):
    """The decoder's state.

    Attributes:
        keys: the last w keys, ``[..., w, d]``, the newest last.
        values: the values of these keys, and a column of ones, ``[..., w, d_v + 1]``.
        token_count: the number of earlier tokens, a scalar.
        sums: ``Σ φ(k_j) [v_j, 1]ᵀ`` over the tokens that left the window, ``[..., 2d, d_v + 1]``.
    """

    keys: Tensor
    values: Tensor
    token_count: Tensor
    sums: Tensor


def init_state(q: Tensor, v: Tensor, p: LolcatsParams) -> State:
    """Return the state before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    (*lead, d), columns, like = q.shape, v.shape[-1] + 1, at_least_float32(v)
    return State(
        like.new_zeros(*lead, p.window, d),
        like.new_zeros(*lead, p.window, columns),
        torch.zeros((), dtype=torch.int64, device=v.device),
        like.new_zeros(*lead, 2 * d, columns),
    )


def step(state: State, q: Tensor, k: Tensor, v: Tensor, p: LolcatsParams) -> tuple[Tensor, State]:
    """Return the output of one token, ``[..., d_v]``, and the next state."""
    q, k, v = at_least_float32(q).unsqueeze(-2), at_least_float32(k).unsqueeze(-2), at_least_float32(v).unsqueeze(-2)
    keys, values = torch.cat([state.keys, k], -2), torch.cat([state.values, with_ones(v)], -2)
    # The oldest token leaves the window and is added to the sums. Until the window is full, the oldest slot holds
    # values of zero, which add nothing.
    sums = state.sums + both_softmaxes(keys[..., :1, :]).mT @ values[..., :1, :]
    keys, values, token_count = keys[..., 1:, :], values[..., 1:, :], state.token_count + 1
    out = both_softmaxes(q) @ sums
    if p.window:
        in_window = torch.arange(p.window, device=q.device) >= p.window - token_count
        out = out + exponentials(scores(q, keys), in_window) @ values
    return apply_normaliser(out).squeeze(-2).to(v.dtype), State(keys, values, token_count, sums)


def cost(n: int, d: int, p: LolcatsParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v in the windows, and products of features (twice if not causal)."""
    adds, window_elements, feature_elements = 0, 0, 0
    if p.window:
        before, after = p.window - 1, 0 if causal else p.window - 1
        adds += window_pairs(n, block=ROWS, before=before, after=after) * (2 * d + 1)
        rows = min(n, ROWS)
        window_elements = 2 * n * (d + 1) + 5 * rows * min(n, rows + before + after)
    for window in (p.window,) if causal else (p.window, max(p.window, 1)):
        if n > window:
            adds += causal_multiply_adds(n - window, 2 * d, d + 1, mode="chunked", normalise=False, referenced=False)
            # The numbers in memory: the features and the sums, and without a causal mask their reversed copies too.
            feature_elements = n * (8 * d + 4 if causal else 13 * d + 5) + 2 * d * (d + 1)
    return Cost(multiply_adds=adds, peak_elements=max(window_elements, feature_elements))


VARIANT = Variant(
    __name__,
    title="LoLCATs",
    summary="Keys within a window get softmax weights, and keys beyond it get the weights of linear attention. Each "
    "row is divided by its sum.",
    formula=r"A_{ij} \propto \begin{cases} e^{s_{ij} - \max_{|i-l| < w} s_{il}} & |i-j| < w \\"
    r" \varphi(q_i)^\top \varphi(k_j) & \text{beyond} \end{cases},\quad s = \frac{Q K^\top}{\sqrt d}",
    complexity="n (w + d) d",
    params=LolcatsParams,
    cross_reason="a query attends to a window around its own position, so queries and keys must come from one "
    "sequence.",
    approximates="softmax",
    zero_rows=True,
    decoder=Decoder(init_state, step, normalised=False),
    note=(
        "Published models learn two things: the feature map of linear attention, and a factor that balances softmax "
        "(within the window) and linear attention (beyond it). Here, the feature map is fixed, and the factor is "
        "left out. With a window of 0 tokens, a row is zero if the dot products of the query's features with those "
        "of all keys are too small for float32."
    ),
    source=Paper("LoLCATs: On Low-Rank Linearizing of Large Language Models", 2024, "https://arxiv.org/abs/2410.10254"),
    special_cases=(SpecialCase("hedgehog", {"window": 0}), SpecialCase("softmax", {"window": TOKENS})),
)
