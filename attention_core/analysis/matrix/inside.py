"""The intermediate results of a variant on one head, such as features or landmarks, its matrix and its reference."""

import numpy as np
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.variant import Attention


class Inside(CompactRepr):
    """The intermediate results of one variant on one head.

    Attributes:
        parts: its anatomy by name, without the axis of heads.
        weights: its matrix, ``[n, n]``.
        reference: the matrix with which it is compared, softmax for nearly all variants, ``[n, n]``.
    """

    parts: dict[str, np.ndarray]
    weights: np.ndarray
    reference: np.ndarray


def look(qkv: QKV, attention: Attention, head: int, causal: bool) -> Inside:
    """Compute a variant's intermediate results, matrix and reference on one head.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: the variant with its settings; it must have an anatomy.
        head: index of the head; a variant with ``couples_heads`` still gets all heads.
        causal: whether future keys are hidden.

    Raises:
        NotCausalError: if ``causal`` is set and the variant cannot be causal.
        ValueError: if the variant has no anatomy.
    """
    together = attention.variant.couples_heads
    q, k, v = (x if together else x[head] for x in qkv.tensors)

    def own(matrix: Tensor) -> np.ndarray:
        return (matrix[head] if together else matrix).numpy()

    weights = attention.weights(q, k, causal=causal)  # raises NotCausalError
    return Inside(
        parts={name: part.numpy() for name, part in attention.anatomy(q, k, v, causal=causal).items()},
        weights=own(weights),
        reference=own(attention.reference(q, k, causal=causal)),
    )


def anatomy_of_head(qkv: QKV, attention: Attention, head: int, *, tokens: int | None = None) -> dict[str, np.ndarray]:
    """Return a variant's anatomy by name on a head's first tokens (None for all), without a causal mask."""
    found = attention.anatomy(*(x[head, :tokens] for x in qkv.tensors))
    return {name: part.numpy() for name, part in found.items()}


def logits(qkv: QKV, head: int) -> np.ndarray:
    """Return the logits ``q kᵀ / √d`` of a head, ``[n, n]``."""
    return (qkv.q[head] @ qkv.k[head].mT / qkv.q.shape[-1] ** 0.5).numpy()
