"""A variant's matrix on one head, its intermediate results (such as landmarks), and the matrix that it approximates."""

import numpy as np
from torch import Tensor

from attention_core.analysis.low_rank.factors import product, relative_error_of
from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV

COLUMN_RATIO = 4
"""A column of a matrix is strong if its sum exceeds this multiple of the mean over all columns."""


class IntermediateResults(CompactRepr):
    """The intermediate results of one variant on one head.

    Attributes:
        parts: intermediate results by name, as ``Attention.anatomy`` returns them, without the axis of heads.
        weights: the variant's matrix, ``[n, n]``.
        reference: the matrix with which ``weights`` is compared, softmax for nearly all variants, ``[n, n]``.
    """

    parts: dict[str, np.ndarray]
    weights: np.ndarray
    reference: np.ndarray


def intermediate_results(qkv: QKV, attention: Attention, head: int, causal: bool) -> IntermediateResults:
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
    couples_heads = attention.variant.couples_heads
    q, k, v = (x if couples_heads else x[head] for x in qkv.tensors)

    def of_head(matrix: Tensor) -> np.ndarray:
        return (matrix[head] if couples_heads else matrix).numpy()

    # ``weights`` raises NotCausalError if ``causal`` is set and the variant cannot be causal.
    weights = attention.weights(q, k, causal=causal)
    return IntermediateResults(
        parts={name: part.numpy() for name, part in attention.anatomy(q, k, v, causal=causal).items()},
        weights=of_head(weights),
        reference=of_head(attention.reference(q, k, causal=causal)),
    )


def anatomy_of_head(qkv: QKV, attention: Attention, head: int, *, tokens: int | None = None) -> dict[str, np.ndarray]:
    """Return the results of ``Attention.anatomy`` on a head's first ``tokens``, without a causal mask."""
    anatomy = attention.anatomy(*(x[head, :tokens] for x in qkv.tensors))
    return {name: part.numpy() for name, part in anatomy.items()}


def errors_without_inverse(qkv: QKV, attention: Attention) -> tuple[tuple[float, float], ...]:
    """Return, for each head, the error of Nyström's product ``left @ right`` without the inverse, and with it."""
    heads = (intermediate_results(qkv, attention, head, False) for head in range(len(qkv.q)))
    return tuple(
        (
            relative_error_of(product(each.parts["left"], each.parts["right"]), each.reference),
            relative_error_of(each.weights, each.reference),
        )
        for each in heads
    )


def logits(qkv: QKV, head: int) -> np.ndarray:
    """Return the logits ``q kᵀ / √d`` of a head, ``[n, n]``."""
    return (qkv.q[head] @ qkv.k[head].mT / qkv.q.shape[-1] ** 0.5).numpy()


def strong_column(entries: np.ndarray) -> tuple[int, float] | None:
    """Return the index of a matrix's largest column, by sum, and its share of the sum of all entries.

    Return None if the column's sum is at most ``COLUMN_RATIO`` times the mean of all columns.

    Args:
        entries: values of at least zero, ``[n, n]``.
    """
    totals = entries.sum(0)
    strongest = int(totals.argmax())
    if totals[strongest] <= COLUMN_RATIO * totals.mean():
        return None
    return strongest, float(totals[strongest] / totals.sum())
