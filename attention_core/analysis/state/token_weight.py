"""The weight that later tokens give to one early token: in softmax, and in linear attention with and without decay."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from attention_core import registry
from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.fit import fit_power

DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
"""Decays to compare: the weight of a token falls to 1/e within 1.4 (γ = 0.5) to 200 tokens (γ = 0.995)."""


class TokenWeight(CompactRepr):
    """The weight of one token in all later rows.

    Attributes:
        weights: ``A_ij`` for ``i = j .. n - 1``, ``float64 [n - j]``.
        start: first row for the fits (see ``fit_start``), at most ``n``.
        power: exponent a of ``A_ij ~ (i + 1)^a`` without decay; None for fewer than three positive weights.
        factor: f of ``A_ij ~ f^(i - j)`` with decay, the share left per token; None for fewer than three
            positive weights.
    """

    weights: np.ndarray
    start: int
    power: float | None
    factor: float | None

    @property
    def half_life(self) -> float | None:
        """The number of tokens until half of the weight is left, by ``factor``; None if it does not decrease."""
        return None if self.factor is None or self.factor >= 1 else math.log(0.5) / math.log(self.factor)


def variants(decays: Sequence[float], feature_map: str) -> tuple[Attention, ...]:
    """Return the variants to compare: softmax, linear attention, and retention at each decay, with one feature map.

    Raises:
        SettingError: for an unknown feature map, or a decay out of bounds.
    """
    return (
        registry.get("softmax"),
        registry.get("linear", feature_map=feature_map),
        *(registry.get("retention", feature_map=feature_map, decay=decay) for decay in decays),
    )


def causal_weights(qkv: QKV, attention: Attention, *, head: int | None) -> np.ndarray:
    """Compute a variant's causal matrix in float64, so that tiny weights are not zero, ``float64 [n, n]``.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: a variant that can be causal.
        head: index of the head; None for the average of the heads' matrices.
    """
    selected = qkv.of_head(head)
    weights = torch.zeros(qkv.n, qkv.n, dtype=torch.float64)
    for q, k in zip(selected.q, selected.k, strict=True):  # one head at a time: twelve heads together would take a GiB
        weights += attention.weights(q.double(), k.double(), causal=True)
    return (weights / selected.heads).numpy()


def fit_start(token: int, decay: float | None) -> int:
    """Return the first row used to fit a token's weight; in earlier rows, the tokens before it dominate the row sum.

    Each weight is divided by the sum of its row. Without decay, this sum is about twice as large in the returned
    row as in the token's own row. With decay, the returned row is at least ``1 / (1 - γ)``, where the sum is nearly
    constant.
    """
    return 2 * token + 1 if decay is None else max(token, round(1 / (1 - decay)))


def later_weights(weights: np.ndarray, token: int, *, decay: float | None = None) -> TokenWeight:
    """Return the weight of one token in all later rows, with a fitted power law or, with decay, an exponential.

    Args:
        weights: a causal matrix, ``[n, n]``.
        token: index j of the token.
        decay: γ below 1 for a variant with decay; None for a plain sum.
    """
    start = min(fit_start(token, decay), len(weights))
    column = weights[start:, token]
    power = factor = None
    positive = np.flatnonzero(column > 0)
    if len(positive) >= 3 and decay is None:
        power = fit_power((positive + start + 1).tolist(), column[positive].tolist()).exponent
    elif len(positive) >= 3:
        factor = math.exp(float(np.polyfit(positive, np.log(column[positive]), 1)[0]))
    return TokenWeight(weights=weights[token:, token], start=start, power=power, factor=factor)


def first_tokens_share(row: np.ndarray, tokens: int) -> float:
    """Return the share of a row's absolute weight on its first tokens; 0 for a zero row."""
    sizes = np.abs(row)
    return float(sizes[:tokens].sum() / (sizes.sum() or 1.0))
