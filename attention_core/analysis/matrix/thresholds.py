"""Where entmax's threshold lies, and how many keys it leaves, as α goes from nearly softmax to sparsemax."""

from collections.abc import Sequence

import numpy as np

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.variants.dense.entmax import seen_logits, threshold


class Thresholds(CompactRepr):
    """One head's rows at several α.

    Attributes:
        alphas: as they were asked for.
        thresholds: the logit above which a key weighs something, of each row at each α, ``[alphas, n]``.
        kept: how many keys lie above it, ``[alphas, n]``.
    """

    alphas: np.ndarray
    thresholds: np.ndarray
    kept: np.ndarray


def thresholds(qkv: QKV, head: int, causal: bool, alphas: Sequence[float]) -> Thresholds:
    """Find every row's threshold in float64, once for each α.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        head: the head.
        causal: whether the future is hidden.
        alphas: above 1.
    """
    logits = seen_logits(qkv.q[head].double(), qkv.k[head].double(), causal=causal)
    found = [threshold(logits, alpha) for alpha in alphas]
    return Thresholds(
        alphas=np.array(alphas),
        thresholds=np.stack([each[:, 0].numpy() for each in found]),
        kept=np.stack([(logits > each).sum(-1).numpy() for each in found]),
    )
