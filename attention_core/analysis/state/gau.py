"""What does a gated attention unit do with one head? Its matrix, its gate and its price, beside multi-head softmax.

``O = U ⊙ (A V)`` with ``A`` of squared ReLU: one matrix serves all channels, and a gate decides token by token and
channel by channel what passes. As the gate is per channel there is no one n x n matrix from values to outputs; channel
c's is ``diag(u_c) A``. Sources: Hua et al. 2022, arXiv 2202.10447; kexue.fm/archives/8934.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core import registry
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.ops.random import normal
from attention_core.variant import Attention

EXPANSION = 2
"""Channels of the unit over its width, as in the paper."""
SHARED = 128
"""Size s of what queries and keys are made of, as in the paper; never more than the width."""
FEED_FORWARD = 4
"""Width of a transformer's feed-forward layer over the model's."""
CHANNELS = 256
"""Channels that are worked out at most: they do not depend on each other, and a picture holds no more."""
HEADS = 4
"""Heads whose softmax is kept to be looked at, from the first."""


class Unit(CompactRepr):
    """The numbers a unit would learn, for width D, c channels and the shared size s.

    Attributes:
        gate: ``W_u``, ``[D, c]``.
        value: ``W_v``, ``[D, c]``.
        shared: ``W_z``, ``[D, s]``.
        scale: ``γ`` of queries and keys, ``[2, s]``.
        offset: ``β`` of queries and keys, ``[2, s]``.
    """

    gate: Tensor
    value: Tensor
    shared: Tensor
    scale: Tensor
    offset: Tensor


class Passed(CompactRepr):
    """What a unit makes of its input.

    Attributes:
        weights: ``A``, ``[n, n]``.
        gate: ``U``, ``[n, c]``.
        mixed: ``A V``, ``[n, c]``.
    """

    weights: Tensor
    gate: Tensor
    mixed: Tensor


class Look(CompactRepr):
    """A drawn unit on an input's values, beside the input's own heads.

    Attributes:
        weights: the unit's one matrix, ``float32 [n, n]``.
        gate: ``U``, the first channels, ``float32 [n, c]``.
        mixed: ``A V``, which the gate lets through or not, ``float32 [n, c]``.
        heads: softmax of the first heads, ``float32 [h, n, n]``.
        apart: how much of a head's row lies on other keys than in the mean of all heads' rows, a share, mean over rows
            and heads.
        distance: how far ``U ⊙ (A V)`` lies from the nearest multiple of ``A V``, over its own length; None where
            nothing passes.
    """

    weights: np.ndarray
    gate: np.ndarray
    mixed: np.ndarray
    heads: np.ndarray
    apart: float
    distance: float | None


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a layer costs: numbers it learns, multiply-adds on n tokens, numbers in its attention matrices."""

    parameters: int
    multiply_adds: int
    matrices: int


def look(qkv: QKV, attention: Attention, *, causal: bool, seed: int = 0) -> Look:
    """Send an input's values through a unit whose projections are drawn, not trained.

    Args:
        qkv: the input; the unit's own input is the values of all heads side by side, ``[n, H d_v]``, every token
            scaled to mean 0 and variance 1.
        attention: squared ReLU with its settings: how the unit's logits become its matrix.
        causal: whether the future is hidden.
        seed: what the projections are drawn from.
    """
    x = tokens(qkv)
    passed = unit_pass(x, draw(x.shape[-1], seed), attention, causal=causal)
    softmax = registry.get("softmax")
    mean = torch.zeros(qkv.n, qkv.n)
    for q, k in zip(qkv.q, qkv.k, strict=True):  # one by one: many heads at once would take a GiB
        mean += softmax.weights(q, k, causal=causal) / qkv.heads
    apart, kept = 0.0, []
    for head, (q, k) in enumerate(zip(qkv.q, qkv.k, strict=True)):
        weights = softmax.weights(q, k, causal=causal)
        apart += float((weights - mean).abs().sum(-1).mean()) / 2 / qkv.heads
        if head < HEADS:
            kept.append(weights)
    return Look(
        weights=passed.weights.numpy(),
        gate=passed.gate.numpy(),
        mixed=passed.mixed.numpy(),
        heads=torch.stack(kept).numpy(),
        apart=apart,
        distance=distance(passed.gate * passed.mixed, passed.mixed),
    )


def tokens(qkv: QKV) -> Tensor:
    """The values of all heads side by side, every token scaled to mean 0 and variance 1, ``[n, H d_v]``."""
    x = qkv.v.movedim(0, 1).flatten(1)
    return F.layer_norm(x, x.shape[-1:])


def draw(width: int, seed: int) -> Unit:
    """An untrained unit, its first ``CHANNELS`` channels: projections that keep the size, γ and β of normal numbers."""
    like, channels, shared = torch.empty(()), min(EXPANSION * width, CHANNELS), shared_size(width)
    gate, value, both = (
        normal((width, size), seed, like, stream) * width**-0.5
        for stream, size in enumerate((channels, channels, shared))
    )
    scale, offset = (normal((2, shared), seed, like, stream) for stream in (3, 4))
    return Unit(gate=gate, value=value, shared=both, scale=scale, offset=offset)


def unit_pass(x: Tensor, unit: Unit, attention: Attention, *, causal: bool) -> Passed:
    """``U = φ(X W_u)``, ``V = φ(X W_v)``, ``Z = φ(X W_z)``, ``Q = γ_q ⊙ Z + β_q``, ``K`` likewise, with φ = SiLU.

    Args:
        x: the tokens, ``[n, D]``.
        unit: what it has learned.
        attention: squared ReLU with its settings; the paper's ``A = relu²(Q Kᵀ / √s) / n`` by default.
        causal: whether the future is hidden.
    """
    gate, value, shared = (F.silu(x @ w) for w in (unit.gate, unit.value, unit.shared))
    q, k = (shared * scale + offset for scale, offset in zip(unit.scale, unit.offset, strict=True))
    weights = attention.weights(q, k, causal=causal)
    return Passed(weights=weights, gate=gate, mixed=weights @ value)


def distance(gated: Tensor, mixed: Tensor) -> float | None:
    """How far one matrix lies from the nearest multiple of another, over its own norm; None where it is zero."""
    gated, mixed = gated.double(), mixed.double()
    own = float(gated.norm())
    if own == 0:
        return None
    multiple = (gated * mixed).sum() / mixed.square().sum()
    return float((gated - multiple * mixed).norm()) / own


def shared_size(width: int) -> int:
    """Size s of what queries and keys are made of."""
    return min(SHARED, width)


def unit_price(n: int, width: int) -> Price:
    """One unit: three projections to or from 2 D channels, one to s, two scales and offsets; one n x n matrix."""
    channels, s = EXPANSION * width, shared_size(width)
    return Price(
        parameters=3 * width * channels + width * s + 4 * s,
        multiply_adds=n * (3 * width * channels + width * s) + n * n * (s + channels),
        matrices=n * n,
    )


def block_price(n: int, width: int, heads: int) -> Price:
    """One transformer block: attention with its four projections, then two of the feed-forward layer; H matrices."""
    projections = (4 + 2 * FEED_FORWARD) * width**2
    return Price(parameters=projections, multiply_adds=n * projections + 2 * n * n * width, matrices=heads * n * n)
