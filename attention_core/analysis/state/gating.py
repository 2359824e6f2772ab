"""Linear attention in which every token shrinks the sums over the past by a factor, its gate, computed from its key.

It is compared with linear attention whose factor is the same for all tokens. Trained models learn the gate. Here
nothing is trained: one kind of gate is a rule without parameters, the other has random weights in the form that models
learn. Sources: Katsch 2023, arXiv 2311.01927; Yang et al. 2023, arXiv 2312.06635.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.ops.linear.features import FEATURE_MAPS, Features, exponential_features, similarities
from attention_core.ops.random import normal
from attention_core.ops.softmax.masked import normalise_rows

KINDS = ("surprise", "drawn")
"""Kinds of gates; see ``log_gates``."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The settings of a gate, the share of the past that a token keeps, computed from its key.

    Attributes:
        kind: one of ``KINDS``.
        decay: γ between 0 and 1, the share kept if the key is orthogonal to the mean of the earlier keys, or, for kind
            ``"drawn"``, to the random weights.
        seed: seed of the random weights of kind ``"drawn"``.
    """

    kind: str
    decay: float
    seed: int = 0


class Gated(CompactRepr):
    """Linear attention with a gate.

    Attributes:
        weights: its causal matrix, ``float64 [n, n]``.
        even: the matrix with the same decay at every token, the geometric mean of the gates, ``float64 [n, n]``.
        gates: share of the past that token t keeps, ``float64 [n]``; the first token has no past and has 1.
    """

    weights: np.ndarray
    even: np.ndarray
    gates: np.ndarray

    @property
    def mean(self) -> float:
        """The geometric mean of the gates, which is the fixed decay of ``even``; 1 for a single token."""
        return math.exp(float(np.log(self.gates[1:]).mean())) if len(self.gates) > 1 else 1.0


def gated(qkv: QKV, gate: Gate, feature_map: str, *, head: int | None) -> Gated:
    """Compute linear attention with a gate and with the corresponding fixed decay.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        gate: settings of the gate, which each head computes from its own keys.
        feature_map: a feature map of ``retention``.
        head: index of the head; None for the heads' average matrices and the geometric mean of their gates.
    """
    selected = qkv.of_head(head)
    weights, even = torch.zeros(2, qkv.n, qkv.n, dtype=torch.float64)
    log_gates_sum = torch.zeros(qkv.n, dtype=torch.float64)
    for q, k in zip(selected.q.double(), selected.k.double(), strict=True):
        log_gate = log_gates(k, gate)
        constant = torch.full_like(log_gate, float(log_gate[1:].mean()) if len(log_gate) > 1 else 0.0)
        weights += gated_weights(q, k, log_gate, feature_map)
        even += gated_weights(q, k, constant, feature_map)
        log_gates_sum += log_gate
    return Gated(
        weights=(weights / selected.heads).numpy(),
        even=(even / selected.heads).numpy(),
        gates=(log_gates_sum / selected.heads).exp().numpy(),
    )


def log_gates(k: Tensor, gate: Gate) -> Tensor:
    """Compute ``log γ_t`` of each token, ``[n]``, from its key and the keys before; 0 for the first, without a past.

    ``"surprise"``: ``γ_t = γ^(1 - cos(k_t, mean of the keys before))``. A key similar to those before forgets nothing;
    an orthogonal key forgets as much as a decay of γ. ``"drawn"``: ``γ_t = σ(log(γ / (1 - γ)) + w·k_t / ‖k_t‖)`` with
    independent normal numbers w.

    Args:
        k: one head's keys, ``[n, d]`` float64.
        gate: settings of the gate.
    """
    if gate.kind == "surprise":
        previous_keys = k.cumsum(0)[:-1]
        logs = (1 - F.cosine_similarity(k[1:], previous_keys, dim=-1)).clamp(min=0) * math.log(gate.decay)
    else:
        w = normal((k.shape[-1],), gate.seed, k)
        logs = F.logsigmoid(F.normalize(k[1:], dim=-1) @ w + math.log(gate.decay / (1 - gate.decay)))
    return F.pad(logs, (1, 0))


def gated_weights(q: Tensor, k: Tensor, log_gates_: Tensor, feature_map: str) -> Tensor:
    """Compute ``φ(q_i)·φ(k_j) exp(g_i - g_j)`` for ``j <= i``, with each row divided by its sum, ``[n, n]``.

    ``g_t`` is the sum of the logarithms of the gates up to t, because token j passes through the gates j + 1 to i.

    Args:
        q: one head's queries, ``[n, d]`` float64.
        k: one head's keys, ``[n, d]`` float64.
        log_gates_: ``log γ_t``, ``[n]``, at most 0.
        feature_map: a feature map of ``retention``.
    """
    cumulative = -log_gates_.cumsum(0)[:, None]
    # The factor ``exp(g_i - g_j)`` is ``exp(g_i)`` times ``exp(-g_j)``. For the feature map ``exp``, adding ``-g_j`` to
    # k_j gives ``exp(-g_j)``. The factor ``exp(g_i)`` is left out, because it cancels when row i is divided by its sum.
    if feature_map == "exp":
        features = exponential_features(q, k + cumulative, causal=True)
    else:
        features = Features(FEATURE_MAPS[feature_map](q), FEATURE_MAPS[feature_map](k), cumulative)
    return normalise_rows(similarities(features, causal=True))
