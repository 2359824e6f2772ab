"""Performer: random features whose products estimate the exponentials of softmax (FAVOR+).

With ``x = q / d^¼`` and ``y = k / d^¼`` the kernel is ``exp(x·y)``. It is estimated by a mean over random directions
``w ~ N(0, I)``, and the setting ``kind`` selects the terms of this mean. For ``positive``, a term is
``exp(w·x - ‖x‖²/2) exp(w·y - ‖y‖²/2)``. For ``hyperbolic``, it is the mean of this term for w and this term for -w. For
``trig``, it is ``exp(‖x‖²/2) exp(‖y‖²/2) cos(w·(x - y))``. The kind ``relu`` estimates the arc-cosine kernel instead.
The other three kinds estimate softmax, so the variant as a whole is compared with softmax.

By default, the directions w have the random lengths of N(0, I). The similarities are then unbiased, but the weights,
which are divided by row sums, are not. Directions of fixed length √d usually lower the variance but introduce a bias,
except for ``relu``. With a fixed length, ``positive`` and ``hyperbolic`` similarities are on average too small, and
more so as ``‖x + y‖`` grows. In the heads of trained models, they are often smaller than half the true value.

Some implementations add a small constant to the features or row sums. Here, no such constant is added, because it would
hide two failures: with ``relu``, a row is zero if no feature is positive in both the query and a key, and with
``trig``, weights grow without bound as the signed estimates of a row cancel. The number that
is subtracted from the exponents, to keep exponentials in range, has no effect on the weights.
"""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.gpu_steps import step_size
from attention_core.ops.linear.causal_scan import CHUNK, State
from attention_core.ops.linear.features import LogFeatures, feature_pair, similarities
from attention_core.ops.linear.scans import map_heads, mode_setting, needs_gradient
from attention_core.ops.linear.streamed_kernel import (
    BLOCK,
    attend_chunk,
    initial_state,
    streamed_attention,
    streamed_cost,
)
from attention_core.ops.random import generator
from attention_core.ops.softmax.masked import at_least_float32, normalise_rows
from attention_core.variant import Cost, Decoder, Paper, Params, Variant, param

KINDS = ("positive", "hyperbolic", "trig", "relu")


class PerformerParams(Params):
    """Settings of the random features."""

    features: int = param(
        64,
        low=1,
        high=2048,
        scale="log",
        budget=True,
        help="Number m of random vectors onto which queries and keys are projected. The random error in the estimate "
        "of softmax's exponential is roughly proportional to 1/√m.",
    )
    kind: str = param(
        "positive",
        choices=KINDS,
        help='Function that is applied to each projection of a query or key onto a random vector. "positive" uses exp. '
        '"hyperbolic" uses exp of the projection and exp of its negative. "trig" uses cosine and sine, so weights can '
        'be negative. "relu" uses the projection if it is positive, otherwise 0. With "relu", the features estimate a '
        "function other than softmax's exponential.",
    )
    orthogonal: bool = param(
        True,
        help="Make the random vectors orthogonal to each other, in groups of d vectors, where d is the head size. "
        "Orthogonal vectors cover all directions more evenly than independent vectors, which reduces the random "
        "error.",
    )
    row_norms: str = param(
        "chi",
        choices=("chi", "fixed"),
        help='Lengths of the random vectors. With "chi", they are random, like those of Gaussian vectors, so '
        'estimates of the exponential are right on average. With "fixed", they are always √d. Estimates are then '
        "usually less noisy. However, they are wrong on average, unless the kind of features is “relu”.",
    )
    seed: int = param(0, low=0, high=2**31 - 1, help="Random seed of the random vectors.")
    mode: str = mode_setting()


def to_precision(x: Tensor, p: PerformerParams) -> Tensor:
    """Return ``x`` in at least float32, or in float64 for ``trig``, whose signed terms may nearly cancel."""
    return x.double() if p.kind == "trig" else at_least_float32(x)


def directions(q: Tensor, p: PerformerParams) -> Tensor:
    """Draw m random directions, each uniformly distributed, ``[m, d]``; d is the size of the queries ``q``."""
    m, d = p.features, q.shape[-1]
    rng = generator(p.seed)
    W = torch.randn(-(-m // d), d, d, generator=rng, dtype=torch.float64, device="cpu")
    if p.orthogonal:
        # The lengths are drawn separately, because they must be independent of the directions.
        lengths = torch.randn(W.shape, generator=rng, dtype=torch.float64, device="cpu").norm(dim=-1, keepdim=True)
        Q, R = torch.linalg.qr(W)
        # The signs of the diagonal of R make the decomposition unique, and Q uniform among all orthogonal matrices.
        W = Q * torch.linalg.diagonal(R).sgn().unsqueeze(-2) * lengths
    if p.row_norms == "fixed":
        W *= math.sqrt(d) / W.norm(dim=-1, keepdim=True)
    return W.flatten(0, 1)[:m].to(to_precision(q.new_empty(0), p))


def definition(q: Tensor, k: Tensor, v: Tensor, p: PerformerParams, *, causal: bool) -> Tensor:
    """Compute ``φ(q) φ(k)ᵀ`` of random features, each row divided by its sum, times v, ``[..., n, d_v]``."""
    W = directions(q, p)  # [m, d]

    def features(x: Tensor) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        projections, half_norm = x @ W.mT, x.square().sum(-1, keepdim=True) / 2
        if p.kind == "relu":
            return projections.relu()
        if p.kind == "trig":
            return torch.cat([projections.cos(), projections.sin()], -1) * half_norm.exp()
        if p.kind == "hyperbolic":
            projections = torch.cat([projections, -projections], -1)
        return (projections - half_norm).exp()

    similarity = features(q) @ features(k).mT
    similarity = similarity.tril() if causal else similarity
    return normalise_rows(similarity) @ v


def phi(x: Tensor, W: Tensor, p: PerformerParams) -> LogFeatures:
    """Return C features of queries or keys, ``[..., n, C]``, for directions W, ``[m, d]``.

    The dot product of the features of a query and a key estimates a kernel.
    """
    x, scale = to_precision(x, p), x.shape[-1] ** -0.25
    projections = x @ (scale * W).mT  # w·x, [..., n, m]
    half_norm = x.square().sum(-1, keepdim=True) * (scale**2 / 2)  # ‖x‖²/2, [..., n, 1]
    log_scale = math.log(len(W)) / 2  # every feature is divided by √m; for “hyperbolic” by √2m
    if p.kind == "relu":
        return LogFeatures(projections.relu(), torch.full_like(half_norm, -log_scale))
    if p.kind == "trig":
        projections = torch.cat([projections, projections - math.pi / 2], -1)
        return LogFeatures(projections.cos(), half_norm - log_scale)
    if p.kind == "hyperbolic":
        projections, log_scale = torch.cat([projections, -projections], -1), log_scale + math.log(2) / 2
    return LogFeatures(None, projections.sub_(half_norm + log_scale))


def weights(q: Tensor, k: Tensor, p: PerformerParams, *, causal: bool) -> Tensor:
    """Return ``φ(q) φ(k)ᵀ``, each row divided by its sum, ``[..., n, n]``."""
    f = feature_pair(partial(phi, W=directions(q, p), p=p), q, k, causal=causal)  # φ(q) and φ(k), [..., n, C]
    return normalise_rows(similarities(f, causal=causal)).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: PerformerParams, *, causal: bool) -> Tensor:
    """Return ``φ(q) (φ(k)ᵀ v)``, each row divided by ``φ(q) Σ_j φ(k_j)``, for one block of tokens at a time."""
    attention = partial(streamed_attention, partial(phi, W=directions(q, p), p=p), causal=causal)
    # With gradients, all heads run together, because the backward pass then recomputes the features faster.
    if needs_gradient(q, k, v):
        return attention(q, k, v, size=1 if causal and p.mode == "recurrent" else None)
    size, features = block_size(p, causal=causal), feature_count(p.features, p.kind)
    heads = step_size(heads_per_call(p, min(size, q.shape[-2])), v.device, numbers=size * features)
    return map_heads(partial(attention, size=size), q, k, v, heads_per_call=heads)


def block_size(p: PerformerParams, *, causal: bool) -> int:
    """Return the number of tokens whose features exist at the same time."""
    if causal:
        return 1 if p.mode == "recurrent" else CHUNK
    return max(16, min(512, 4 * BLOCK // feature_count(p.features, p.kind)))


def heads_per_call(p: PerformerParams, tokens: int) -> int:
    """Return for how many heads the features of a block of tokens exist at the same time: one for long blocks."""
    numbers = tokens * feature_count(p.features, p.kind) * (2 if p.kind == "trig" else 1)
    return max(1, 2 * BLOCK // numbers)


class DecoderState(NamedTuple):
    """The state of the decoder: the sums over the tokens so far, and the directions, which are drawn once."""

    state: State
    directions: Tensor


def init_state(q: Tensor, v: Tensor, p: PerformerParams) -> DecoderState:
    """Return the state before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    W = directions(q, p)
    return DecoderState(initial_state(partial(phi, W=W, p=p), q[..., None, :], v[..., None, :]), W)


def step(state: DecoderState, q: Tensor, k: Tensor, v: Tensor, p: PerformerParams) -> tuple[Tensor, DecoderState]:
    """Return the output of one token, ``[..., d_v]``, and the next state."""
    q, k, v = (x.unsqueeze(-2) for x in (q, k, v))
    out, sums = attend_chunk(state.state, q, k, v, phi=partial(phi, W=state.directions, p=p))
    return out.squeeze(-2).to(v.dtype), DecoderState(sums, state.directions)


def feature_count(m: int, kind: str) -> int:
    """Return the number of features C that m directions make for the setting ``kind``."""
    return 2 * m if kind in ("hyperbolic", "trig") else m


def cost(n: int, d: int, p: PerformerParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: projections, key features times values, query features times sums; causal: within chunks."""
    C, size = feature_count(p.features, p.kind), block_size(p, causal=causal)
    adds, elements = streamed_cost(n, C, d, causal=causal, referenced=True, size=size, keys=keys)
    elements = (elements + p.features * d) * (2 if p.kind == "trig" else 1)
    qr_elements = 10 * -(-p.features // d) * d**2  # numbers in memory while the directions are made orthogonal
    return Cost(multiply_adds=adds + (n + (keys or n)) * p.features * d, peak_elements=max(elements, qr_elements))


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: PerformerParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the features, the estimated kernel and the true kernel.

    ``directions`` are ``[m, d]``. ``query_features`` and ``key_features``, ``[..., n, C]``, are scaled against
    overflow, so their products are those of φ up to one factor per query. ``estimate`` and ``kernel``,
    ``[..., n, n]`` float64, are the estimated and true similarities, divided by the largest true similarity of the row
    (by 1 for ``relu``).
    """
    W = directions(q, p)
    f = feature_pair(partial(phi, W=W, p=p), q, k, causal=causal)
    estimate, kernel = estimate_and_kernel(q, k, W, p)
    return {"directions": W, "query_features": f.q, "key_features": f.k, "estimate": estimate, "kernel": kernel}


def estimated_kernel(q: Tensor, k: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Return the kernel that products of features estimate: ``value``, ``[..., n, n]``, and ``log``, ``[..., n, 1]``.

    The kernel is ``value · e^log``; two factors avoid overflow.

    It is ``exp(q·k / √d)``. For ``relu`` it is the arc-cosine kernel ``‖q‖ ‖k‖ (sin θ + (π - θ) cos θ) / (2π √d)``
    of the angle θ (Cho and Saul 2009), whether the directions have the length √d or random lengths.
    """
    products = q @ k.mT / math.sqrt(q.shape[-1])
    if kind != "relu":
        largest = products.amax(-1, keepdim=True)
        return (products - largest).exp(), largest
    norm_products = q.norm(dim=-1, keepdim=True) * k.norm(dim=-1, keepdim=True).mT / math.sqrt(q.shape[-1])
    cosine = (products / torch.where(norm_products == 0, 1.0, norm_products)).clamp(-1, 1)
    angle = cosine.acos()
    value = norm_products * (angle.sin() + (math.pi - angle) * cosine) / (2 * math.pi)
    return value, torch.zeros_like(value[..., :1])


def estimate_and_kernel(q: Tensor, k: Tensor, W: Tensor, p: PerformerParams) -> tuple[Tensor, Tensor]:
    """Return estimated and true kernel, ``[..., n, n]`` float64, both divided by ``e^log`` of ``estimated_kernel``."""
    q, k, W = q.double(), k.double(), W.double()
    kernel, log = estimated_kernel(q, k, p.kind)
    q_features, k_features = phi(q, W, p), phi(k, W, p)
    assert k_features.log is not None
    shift = k_features.log.amax(-2, keepdim=True)
    return q_features.relative_to(log - shift) @ k_features.relative_to(shift).mT, kernel


VARIANT = Variant(
    __name__,
    title="Performer",
    summary="Performer is linear attention with random features of each query and key. By default, the dot product of "
    "these features estimates softmax's exponential.",
    formula=r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_l \varphi(q_i)^\top \varphi(k_l)},\quad "
    r"\varphi(q) = \tfrac{1}{\sqrt m} \exp\!\left(W x - \tfrac{\|x\|^2}{2}\right),\; x = q / d^{1/4}",
    complexity="n m d",
    params=PerformerParams,
    approximates="softmax",
    signed=True,
    random=True,
    decoder=Decoder(init_state, step),
    note="The features are functions of the projections of a query or key onto random vectors. The dot product of a "
    "query's and a key's features estimates softmax's exponential, exp(q · k / √d). The kind “relu” estimates another "
    "function. If the random vectors have random lengths (row norms “chi”), these estimates are right on average. If "
    "all of them have the same length (“fixed”), only the estimates of “relu” are right on average. In both cases, the "
    "weights are wrong on average, because each row is divided by its sum, which is itself a random estimate. With the "
    "kind “trig”, weights can be negative. They can also be very large if the estimates of a row nearly sum to zero.",
    source=Paper(
        "Rethinking Attention with Performers", 2020, "https://arxiv.org/abs/2009.14794", authors="Choromanski et al."
    ),
    further=(articles.PERFORMER,),
)
