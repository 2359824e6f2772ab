"""What does an early token still weigh at the end? Plain accumulation beside decay, and softmax for reference."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from attention_core import registry
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.fit import fit_power
from attention_core.variant import Attention

DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
"""Decays to compare, from forgetting within a token or two to some two hundred."""


class Faded(CompactRepr):
    """The weight of one token in all later rows.

    Attributes:
        weights: ``A_ij`` for ``i = j .. n - 1``, ``float64 [n - j]``.
        start: the row from which on its law holds (see ``settled``), ``n`` at most; the rest is about rows from there.
        power: exponent a of ``A_ij ~ (i + 1)^a`` without decay; None where fewer than three weights are positive.
        factor: f of ``A_ij ~ f^(i - j)`` with decay, what is left of the weight at each further token; None likewise.
    """

    weights: np.ndarray
    start: int
    power: float | None
    factor: float | None

    @property
    def half_life(self) -> float | None:
        """Tokens until half of the weight is left, by ``factor``; None without one, or where it does not fall."""
        return None if self.factor is None or self.factor >= 1 else math.log(0.5) / math.log(self.factor)


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
    looked_at = qkv.of_head(head)
    weights = torch.zeros(qkv.n, qkv.n, dtype=torch.float64)
    for q, k in zip(looked_at.q, looked_at.k, strict=True):  # one by one: twelve heads at once would take a GiB
        weights += attention.weights(q.double(), k.double(), causal=True)
    return (weights / looked_at.heads).numpy()


def settled(token: int, decay: float | None) -> int:
    """The row from which on a weight follows its law: before, the first tokens to come rule the sum it is divided by.

    Without decay that sum has doubled since the token came; with decay it has nearly stopped growing, after about
    ``1 / (1 - γ)`` rows.
    """
    return 2 * token + 1 if decay is None else max(token, round(1 / (1 - decay)))


def fade(weights: np.ndarray, token: int, *, decay: float | None = None) -> Faded:
    """How the weight of one token goes on.

    Args:
        weights: a causal matrix, ``[n, n]``.
        token: j.
        decay: γ below 1 where the variant forgets; None where it adds all tokens up.
    """
    start = min(settled(token, decay), len(weights))
    column = weights[start:, token]
    power = factor = None
    seen = np.flatnonzero(column > 0)
    if len(seen) >= 3 and decay is None:
        power = fit_power((seen + start + 1).tolist(), column[seen].tolist()).exponent
    elif len(seen) >= 3:
        factor = math.exp(float(np.polyfit(seen, np.log(column[seen]), 1)[0]))
    return Faded(weights=weights[token:, token], start=start, power=power, factor=factor)


def first_share(row: np.ndarray, tokens: int) -> float:
    """The share of a row's weight on its first tokens; 0 for a row of zeros."""
    sizes = np.abs(row)
    return float(sizes[:tokens].sum() / (sizes.sum() or 1.0))
