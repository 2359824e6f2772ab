"""What does an early token still weigh at the end? Plain accumulation beside decay, and softmax for reference."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_core import registry
from attention_core.inputs.record import QKV
from attention_core.metrics.fit import fit_power
from attention_core.variant import Attention

DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
"""Decays to compare, from forgetting within a token or two to some two hundred."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Faded:
    """The weight of one token in all later rows.

    Attributes:
        weights: ``A_ij`` for ``i = j .. n - 1``, ``float64 [n - j]``.
        half_life: tokens after j from which on the weight stays below half of the largest it ever was; None where it
            is not below half at the end.
        power: exponent a of ``A_ij ~ (i + 1)^a``; None where fewer than three weights are positive.
        factor: f of ``A_ij ~ f^(i - j)``, what is left of the weight at each further token; None as for ``power``.
    """

    weights: np.ndarray
    half_life: int | None
    power: float | None
    factor: float | None


def variants(decays: Sequence[float], feature_map: str) -> tuple[Attention, ...]:
    """What is compared: softmax, linear attention, and retention at each decay, with the same feature map.

    Raises:
        SettingError: for a feature map there is not, or a decay out of bounds.
    """
    return (
        registry.get("softmax"),
        registry.get("linear", feature_map=feature_map),
        *(registry.get("retention", feature_map=feature_map, decay=decay) for decay in decays),
    )


def causal_weights(qkv: QKV, attention: Attention, *, head: int | None) -> np.ndarray:
    """A variant's causal matrix, worked out in float64, so that tiny weights are no zeros, ``float64 [n, n]``.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: a variant that can be causal.
        head: the head looked at; None for the average of their matrices.
    """
    every = slice(None) if head is None else slice(head, head + 1)
    weights = torch.zeros(qkv.n, qkv.n, dtype=torch.float64)
    for q, k in zip(qkv.q[every], qkv.k[every], strict=True):  # one by one: twelve heads at once would take a GiB
        weights += attention.weights(q.double(), k.double(), causal=True)
    return (weights / len(qkv.q[every])).numpy()


def fade(weights: np.ndarray, token: int) -> Faded:
    """How the weight of one token goes on.

    Args:
        weights: a causal matrix, ``[n, n]``.
        token: j.
    """
    column = weights[token:, token]
    life = int(np.flatnonzero(column >= column.max() / 2)[-1]) + 1
    seen = np.flatnonzero(column > 0)
    power = factor = None
    if len(seen) >= 3:
        power = fit_power((seen + token + 1).tolist(), column[seen].tolist()).exponent
        factor = math.exp(float(np.polyfit(seen, np.log(column[seen]), 1)[0]))
    return Faded(weights=column, half_life=life if life < len(column) else None, power=power, factor=factor)


def first_share(row: np.ndarray, tokens: int) -> float:
    """The share of a row's weight on its first tokens; 0 for a row of zeros."""
    sizes = np.abs(row)
    return float(sizes[:tokens].sum() / (sizes.sum() or 1.0))
