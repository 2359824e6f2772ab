"""A gated attention unit (GAU) with random weights: its matrix and gate, compared with multi-head softmax.

``O = U ⊙ (A V)``, where squared ReLU gives ``A``. All channels share one matrix; a gate multiplies each token and
channel. Because the gate differs by channel, no single n x n matrix maps values to outputs; channel c's matrix is
``diag(u_c) A``. Sources: Hua et al. 2022, arXiv 2202.10447; kexue.fm/archives/8934.
"""

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
"""Ratio of the unit's channels to its width, as in the paper."""
SHARED = 128
"""Size s of the shared vectors for queries and keys, as in the paper; never more than the width."""
CHANNELS = 256
"""Maximum number of channels that are computed: channels are independent, and a picture shows no more."""
HEADS = 4
"""Number of first heads whose softmax is returned for display."""


class UnitWeights(CompactRepr):
    """The weights of a gated attention unit with width D, c channels and shared vectors of size s.

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


class UnitOutputs(CompactRepr):
    """The intermediate results of a gated attention unit.

    Attributes:
        weights: ``A``, ``[n, n]``.
        gate: ``U``, ``[n, c]``.
        attended: ``A V``, ``[n, c]``.
    """

    weights: Tensor
    gate: Tensor
    attended: Tensor


class UnitAnalysis(CompactRepr):
    """The result of a random gated attention unit on an input's values, with the softmax of the input's heads.

    Attributes:
        weights: the unit's single matrix, ``float32 [n, n]``.
        gate: ``U``, the first channels, ``float32 [n, c]``.
        attended: ``A V``, which is multiplied by the gate, ``float32 [n, c]``.
        heads: softmax of the first heads, ``float32 [h, n, n]``.
        head_difference: share of a row's weight that a head puts on other keys than the mean of all heads;
            mean over rows and heads.
        gate_distance: distance of ``U ⊙ (A V)`` from the nearest multiple of ``A V``, over its norm; None for norm 0.
    """

    weights: np.ndarray
    gate: np.ndarray
    attended: np.ndarray
    heads: np.ndarray
    head_difference: float
    gate_distance: float | None


def analyse_unit(qkv: QKV, attention: Attention, *, causal: bool, seed: int = 0) -> UnitAnalysis:
    """Run a unit with random, untrained projections on an input's values.

    Args:
        qkv: the input; the unit's tokens are the concatenated values of all heads, ``[n, H d_v]``, each scaled to mean
            0 and variance 1.
        attention: squared ReLU with its settings, which turns the unit's logits into its matrix.
        causal: whether future keys are hidden.
        seed: seed of the projections.
    """
    x = unit_tokens(qkv)
    outputs = run_unit(x, random_unit(x.shape[-1], seed), attention, causal=causal)
    softmax = registry.get("softmax")
    mean = torch.zeros(qkv.n, qkv.n)
    for q, k in zip(qkv.q, qkv.k, strict=True):  # one head at a time, because many heads together would take a GiB
        mean += softmax.weights(q, k, causal=causal) / qkv.heads
    head_difference, first_matrices = 0.0, []
    for head, (q, k) in enumerate(zip(qkv.q, qkv.k, strict=True)):
        weights = softmax.weights(q, k, causal=causal)
        head_difference += float((weights - mean).abs().sum(-1).mean()) / 2 / qkv.heads
        if head < HEADS:
            first_matrices.append(weights)
    return UnitAnalysis(
        weights=outputs.weights.numpy(),
        gate=outputs.gate.numpy(),
        attended=outputs.attended.numpy(),
        heads=torch.stack(first_matrices).numpy(),
        head_difference=head_difference,
        gate_distance=gate_distance(outputs.gate * outputs.attended, outputs.attended),
    )


def unit_tokens(qkv: QKV) -> Tensor:
    """Return the concatenated values of all heads, with each token scaled to mean 0 and variance 1, ``[n, H d_v]``."""
    x = qkv.v.movedim(0, 1).flatten(1)
    return F.layer_norm(x, x.shape[-1:])


def random_unit(width: int, seed: int) -> UnitWeights:
    """Return an untrained unit with at most ``CHANNELS`` channels: size-preserving projections, normal γ and β."""
    like, channels, shared = torch.empty(()), min(EXPANSION * width, CHANNELS), shared_size(width)
    gate, value, shared_weights = (
        normal((width, size), seed, like, stream) * width**-0.5
        for stream, size in enumerate((channels, channels, shared))
    )
    scale, offset = (normal((2, shared), seed, like, stream) for stream in (3, 4))
    return UnitWeights(gate=gate, value=value, shared=shared_weights, scale=scale, offset=offset)


def run_unit(x: Tensor, unit: UnitWeights, attention: Attention, *, causal: bool) -> UnitOutputs:
    """Compute ``U = φ(X W_u)``, ``V = φ(X W_v)``, ``Z = φ(X W_z)``, ``Q = γ_q ⊙ Z + β_q``, ``K = γ_k ⊙ Z + β_k``.

    φ is SiLU. The matrix A is computed from Q and K.

    Args:
        x: the tokens, ``[n, D]``.
        unit: weights of the unit.
        attention: squared ReLU with its settings; by default the paper's ``A = relu²(Q Kᵀ / √s) / n``.
        causal: whether future keys are hidden.
    """
    gate, value, shared = (F.silu(x @ w) for w in (unit.gate, unit.value, unit.shared))
    q, k = (shared * scale + offset for scale, offset in zip(unit.scale, unit.offset, strict=True))
    weights = attention.weights(q, k, causal=causal)
    return UnitOutputs(weights=weights, gate=gate, attended=weights @ value)


def gate_distance(gated: Tensor, attended: Tensor) -> float | None:
    """Return the distance of ``gated`` from the nearest multiple of ``attended``, over its norm; None for norm 0."""
    gated, attended = gated.double(), attended.double()
    own = float(gated.norm())
    if own == 0:
        return None
    multiple = (gated * attended).sum() / attended.square().sum()
    return float((gated - multiple * attended).norm()) / own


def shared_size(width: int) -> int:
    """Return the size s of the shared vectors for queries and keys."""
    return min(SHARED, width)
