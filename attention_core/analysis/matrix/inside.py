"""How does a variant work? Its real intermediates on one head, beside its matrix and the one it is compared with."""

import numpy as np
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.variant import Attention


class Inside(CompactRepr):
    """One variant taken apart on one head.

    Attributes:
        parts: its anatomy by name, without the axis of heads.
        weights: its matrix, ``[n, n]``.
        reference: the matrix its errors are taken against, softmax for nearly all, ``[n, n]``.
    """

    parts: dict[str, np.ndarray]
    weights: np.ndarray
    reference: np.ndarray


def look(qkv: QKV, attention: Attention, head: int, causal: bool) -> Inside:
    """Take a variant apart on one head.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: the variant with its settings; it must have an anatomy.
        head: the head; a variant whose heads decide together is given all of them all the same.
        causal: whether the future is hidden.

    Raises:
        NotCausalError: if the variant cannot be causal and causal is asked.
        ValueError: if the variant has no anatomy.
    """
    together = attention.variant.couples_heads
    q, k, v = (x if together else x[head] for x in qkv.tensors)

    def own(matrix: Tensor) -> np.ndarray:
        found: np.ndarray = (matrix[head] if together else matrix).numpy()
        return found

    weights = attention.weights(q, k, causal=causal)  # refuses what cannot be causal
    return Inside(
        parts={name: part.numpy() for name, part in attention.anatomy(q, k, v, causal=causal).items()},
        weights=own(weights),
        reference=own(attention.reference(q, k, causal=causal)),
    )


def apart(qkv: QKV, attention: Attention, head: int, *, tokens: int | None = None) -> dict[str, np.ndarray]:
    """A variant's anatomy by name on a head's first tokens, all of them for None, nothing hidden."""
    found = attention.anatomy(*(x[head, :tokens] for x in qkv.tensors))
    return {name: part.numpy() for name, part in found.items()}


def logits(qkv: QKV, head: int) -> np.ndarray:
    """``q kᵀ / √d`` of a head, ``[n, n]``."""
    found: np.ndarray = (qkv.q[head] @ qkv.k[head].mT / qkv.q.shape[-1] ** 0.5).numpy()
    return found
