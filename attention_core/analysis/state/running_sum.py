"""The sums over keys and values that linear attention computes once and that every query reads."""

import numpy as np

from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV

MIN_DIVISOR = np.finfo(np.float32).tiny
"""Lower bound of a sum of features used as a divisor."""


class QuerySums(CompactRepr):
    """The sums that one query of linear attention reads.

    Attributes:
        feature: the query's features, ``[C]``.
        values: ``φ(K)ᵀ V`` over the keys to which it may attend, ``[C, d_v]``.
        keys: ``Σ φ(k)`` over the same keys, ``[C]``.
    """

    feature: np.ndarray
    values: np.ndarray
    keys: np.ndarray

    @property
    def output(self) -> np.ndarray:
        """The output of the query, ``[d_v]``."""
        return self.feature @ self.values / max(self.feature @ self.keys, MIN_DIVISOR)


def sums_of_query(qkv: QKV, attention: Attention, query: int, *, head: int, causal: bool) -> QuerySums:
    """Compute the sums of key features and values that give a query's output.

    The sums are over all keys, or when causal over the keys up to the query's own position.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: a variant whose ``anatomy`` returns ``query_features`` and ``key_features``.
        query: index of the query, from 0.
        head: index of the head.
        causal: whether future keys are hidden.
    """
    inputs = [x[head, : query + 1 if causal else None].double() for x in qkv.tensors]
    # The inputs end at the query, so ``anatomy`` is called without a causal mask. With a causal mask, the feature map
    # ``exp`` would divide the features of different keys by different numbers, so their sum would have no meaning.
    anatomy = attention.anatomy(*inputs)
    keys = anatomy["key_features"].numpy()
    feature = anatomy["query_features"][query].numpy()
    return QuerySums(feature=feature, values=keys.T @ inputs[-1].numpy(), keys=keys.sum(0))
