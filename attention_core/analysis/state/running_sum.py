"""What does one query of linear attention read? The keys' features and the values, summed up once."""

import numpy as np

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.variant import Attention

TINIEST = np.finfo(np.float32).tiny
"""What a sum of features is at least, where it is divided by."""


class Sum(CompactRepr):
    """What one query finds summed up.

    Attributes:
        feature: its own features, ``[C]``.
        values: ``φ(K)ᵀ V`` over the keys it sees, ``[C, d_v]``.
        keys: ``Σ φ(k)`` over the same, ``[C]``.
    """

    feature: np.ndarray
    values: np.ndarray
    keys: np.ndarray

    @property
    def output(self) -> np.ndarray:
        """What it reads, ``[d_v]``."""
        read: np.ndarray = self.feature @ self.values / max(self.feature @ self.keys, TINIEST)
        return read


def sum_for(qkv: QKV, attention: Attention, query: int, *, head: int, causal: bool) -> Sum:
    """The sums that a query reads: over all keys, or causal over those up to itself.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: a variant whose anatomy has ``query_features`` and ``key_features``.
        query: the query, from 0.
        head: the head.
        causal: whether the future is hidden.
    """
    inputs = [x[head, : query + 1 if causal else None].double() for x in qkv.tensors]
    # Over just the keys it sees all share one reference, which exp's features need to be summed.
    found = attention.anatomy(*inputs)
    keys = found["key_features"].numpy()
    feature = found["query_features"][query].numpy()
    return Sum(feature=feature, values=keys.T @ inputs[-1].numpy(), keys=keys.sum(0))
