"""Entmax's threshold and the number of keys above it, for its parameter α from nearly 1 (softmax) to 2 (sparsemax)."""

from collections.abc import Sequence

import numpy as np

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.variants.dense.entmax import masked_logits, threshold


class Thresholds(CompactRepr):
    """The thresholds of α-entmax for one head's rows, at several values of α.

    Attributes:
        alphas: the values of α.
        thresholds: logit above which a key has a positive weight, for each α and row, ``[alphas, n]``.
        key_counts: number of keys above the threshold, ``[alphas, n]``.
    """

    alphas: np.ndarray
    thresholds: np.ndarray
    key_counts: np.ndarray


def thresholds(qkv: QKV, head: int, causal: bool, alphas: Sequence[float]) -> Thresholds:
    """Compute the threshold of α-entmax in every row, for each α, in float64.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        head: index of the head.
        causal: whether future keys are hidden.
        alphas: values of α, each above 1.
    """
    logits = masked_logits(qkv.q[head].double(), qkv.k[head].double(), causal=causal)
    row_thresholds = [threshold(logits, alpha) for alpha in alphas]
    return Thresholds(
        alphas=np.array(alphas),
        thresholds=np.stack([each[:, 0].numpy() for each in row_thresholds]),
        key_counts=np.stack([(logits > each).sum(-1).numpy() for each in row_thresholds]),
    )
