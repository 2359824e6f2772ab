"""How does a variant work? Its real intermediates on one head, beside its matrix and the one it is compared with."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from attention_core.brief import Brief
from attention_core.experiments.error import reference_of
from attention_core.inputs.record import QKV
from attention_core.variant import Attention


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Inside(Brief):
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
    variant = attention.variant
    if variant.anatomy is None:
        raise ValueError(f"{variant.key} has no anatomy")
    together = variant.couples_heads
    q, k, v = (x if together else x[head] for x in (qkv.q, qkv.k, qkv.v))

    def own(matrix: Tensor) -> np.ndarray:
        found: np.ndarray = (matrix[head] if together else matrix).numpy()
        return found

    weights = attention.weights(q, k, causal=causal)  # refuses what cannot be causal
    parts = variant.anatomy(q, k, v, attention.params, causal=causal)
    return Inside(
        parts={name: part.numpy() for name, part in parts.items()},
        weights=own(weights),
        reference=own(reference_of(attention, q, k, causal=causal)),
    )


def apart(qkv: QKV, attention: Attention, head: int, *, tokens: int | None = None) -> dict[str, np.ndarray]:
    """A variant's anatomy by name on a head's first tokens, all of them for None, nothing hidden."""
    anatomy = attention.variant.anatomy
    assert anatomy is not None
    found = anatomy(*(x[head, :tokens] for x in (qkv.q, qkv.k, qkv.v)), attention.params, causal=False)
    return {name: part.numpy() for name, part in found.items()}


def logits(qkv: QKV, head: int) -> np.ndarray:
    """``q kᵀ / √d`` of a head, ``[n, n]``."""
    found: np.ndarray = (qkv.q[head] @ qkv.k[head].mT / qkv.q.shape[-1] ** 0.5).numpy()
    return found
