"""A decay that the data decide: linear attention whose sums shrink by a gate of each token's own, beside a fixed decay.

Trained models learn the gate. Here nothing is trained: one gate is a rule without parameters, the other is drawn in the
form in which gates are learned. Sources: Katsch 2023, arXiv 2311.01927; Yang et al. 2023, arXiv 2312.06635.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.ops.linear.features import MAPS, Features, exponential_features
from attention_core.ops.linear.kernel import similarities
from attention_core.ops.random import normal
from attention_core.ops.softmax.masked import rows_over_sum

KINDS = ("surprise", "drawn")
"""What a gate is made from; see ``log_gates``."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """How a token's key decides how much of the past is kept.

    Attributes:
        kind: one of ``KINDS``.
        decay: γ between 0 and 1: what a gate keeps where its key says nothing.
        seed: what is drawn from, for the kind ``"drawn"``.
    """

    kind: str
    decay: float
    seed: int = 0


class Gated(CompactRepr):
    """Linear attention under a gate.

    Attributes:
        weights: its causal matrix, ``float64 [n, n]``.
        even: the matrix under the fixed decay that forgets as much over the whole text, ``float64 [n, n]``.
        gates: what is left of the past when token t comes, ``float64 [n]``; the first has no past and is 1.
    """

    weights: np.ndarray
    even: np.ndarray
    gates: np.ndarray

    @property
    def mean(self) -> float:
        """The gates' geometric mean, which is the fixed decay of ``even``; 1 for a single token."""
        return math.exp(float(np.log(self.gates[1:]).mean())) if len(self.gates) > 1 else 1.0


def gated(qkv: QKV, gate: Gate, feature_map: str, *, head: int | None) -> Gated:
    """What a gate makes of linear attention.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        gate: the gate; every head has its own, from its own keys.
        feature_map: as of ``retention``.
        head: the head looked at; None for the average of the heads' matrices, and their gates' geometric mean.
    """
    looked_at = qkv.of_head(head)
    weights, even = torch.zeros(2, qkv.n, qkv.n, dtype=torch.float64)
    logs = torch.zeros(qkv.n, dtype=torch.float64)
    for q, k in zip(looked_at.q.double(), looked_at.k.double(), strict=True):
        own = log_gates(k, gate)
        constant = torch.full_like(own, float(own[1:].mean()) if len(own) > 1 else 0.0)
        weights += gated_weights(q, k, own, feature_map)
        even += gated_weights(q, k, constant, feature_map)
        logs += own
    return Gated(
        weights=(weights / looked_at.heads).numpy(),
        even=(even / looked_at.heads).numpy(),
        gates=(logs / looked_at.heads).exp().numpy(),
    )


def log_gates(k: Tensor, gate: Gate) -> Tensor:
    """``log γ_t`` of each token, ``[n]``, from its own key and those before; 0 for the first, which has no past.

    ``"surprise"``: ``γ_t = γ^(1 - cos(k_t, mean of the keys before))``, so a key like those before forgets nothing and
    one at right angles to them as much as a decay of γ. ``"drawn"``: ``γ_t = σ(log(γ / (1 - γ)) + w·k_t / ‖k_t‖)`` with
    w of independent normal numbers.

    Args:
        k: one head's keys, ``[n, d]`` float64.
        gate: the gate.
    """
    if gate.kind == "surprise":
        before = k.cumsum(0)[:-1]
        logs = (1 - F.cosine_similarity(k[1:], before, dim=-1)).clamp(min=0) * math.log(gate.decay)
    else:
        w = normal((k.shape[-1],), gate.seed, k)
        logs = F.logsigmoid(F.normalize(k[1:], dim=-1) @ w + math.log(gate.decay / (1 - gate.decay)))
    return F.pad(logs, (1, 0))


def gated_weights(q: Tensor, k: Tensor, logs: Tensor, feature_map: str) -> Tensor:
    """``φ(q_i)·φ(k_j) exp(g_i - g_j)`` for ``j <= i``, each row divided by its sum, ``[n, n]``.

    ``g_t`` is the sum of the logarithms of the gates up to t: what came at j has passed the gates of j + 1 to i.

    Args:
        q: one head's queries, ``[n, d]`` float64.
        k: its keys.
        logs: ``log γ_t``, ``[n]``, none above 0.
        feature_map: as of ``retention``.
    """
    passed = -logs.cumsum(0)[:, None]
    if feature_map == "exp":  # a row's own factor cancels, so the gates may go into the keys' logarithms
        f = exponential_features(q, k + passed, causal=True)
    else:
        f = Features(MAPS[feature_map](q), MAPS[feature_map](k), passed)
    return rows_over_sum(similarities(f, causal=True))
