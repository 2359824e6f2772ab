"""The weight that later tokens give to one early token: in softmax, and in linear attention with and without decay."""

from collections.abc import Sequence

import numpy as np
import torch

from attention_core import registry
from attention_core.attention import Attention
from attention_core.inputs.record import QKV

DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
"""Decays to compare: the weight of a token falls to 1/e within 1.4 (γ = 0.5) to 200 tokens (γ = 0.995)."""


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


def first_tokens_share(row: np.ndarray, tokens: int) -> float:
    """Return the share of a row's absolute weight on its first tokens; 0 for a zero row."""
    sizes = np.abs(row)
    return float(sizes[:tokens].sum() / (sizes.sum() or 1.0))
