"""Sigmoid attention: a weight is the sigmoid of a shifted logit, so keys do not compete and rows need not sum to one.

Without the shift, the weights of a row of n keys would sum to about n/2. Subtracting ``log n`` from the logits brings
the sum close to one in an untrained model.
"""

import math
from functools import partial

from torch import Tensor

from attention_core.ops.softmax.blockwise import RowBlock, block_size, blockwise_attention, n_pairs
from attention_core.ops.softmax.masked import causal_mask, key_counts, scores
from attention_core.variant import Cost, Paper, Params, Variant, param


class SigmoidParams(Params):
    """Settings of sigmoid attention."""

    shift: str = param(
        "length",
        choices=("length", "fixed"),
        help='Offset that is subtracted from every logit. With "length", it is the logarithm of the number of keys '
        'that the query can attend to. With "fixed", it is the logarithm of the setting “base length”.',
    )
    base_length: int = param(
        512,
        low=1,
        high=65_536,
        scale="log",
        help='Fixed number whose logarithm is subtracted from every logit. Used only with the shift "fixed".',
    )


def weights(q: Tensor, k: Tensor, p: SigmoidParams, *, causal: bool) -> Tensor:
    """Compute ``σ(q kᵀ / √d - log n_i)``, ``[..., n, n]``; n_i is the number of visible keys or ``base_length``."""
    logits = scores(q, k)
    if p.shift == "fixed":
        result = (logits - math.log(p.base_length)).sigmoid()
    else:
        result = (logits - key_counts(k, causal=causal).log().to(logits)).sigmoid()
    return result.masked_fill(~causal_mask(q.shape[-2], q.device), 0.0) if causal else result


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock, p: SigmoidParams) -> Tensor:
    shift = math.log(p.base_length) if p.shift == "fixed" else rows.key_counts(q.device).log().to(q)
    shifted = (q * q.shape[-1] ** -0.5) @ k.mT - shift
    return rows.fill_future(shifted, -math.inf).sigmoid()


def attend(q: Tensor, k: Tensor, v: Tensor, p: SigmoidParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    return blockwise_attention(partial(_row_weights, p=p), q, k, v, causal=causal)


def cost(n: int, d: int, p: SigmoidParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products with k and v, by blocks of queries; memory for the output and 2 blocks of weights."""
    return Cost(
        multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys),
        peak_elements=n * d + block_size(n) * (2 * (keys or n) + d),
    )


VARIANT = Variant(
    __name__,
    title="Sigmoid",
    summary="An offset is subtracted from each logit, and the sigmoid of the result is the weight. Other logits do "
    "not affect it, so rows need not sum to one.",
    formula=r"A_{ij} = \sigma\left(\frac{q_i \cdot k_j}{\sqrt{d}} - \log m_i\right),\quad "
    r"m_i = n_i = \text{number of keys query } i \text{ sees} \quad\text{or}\quad m_i = n_0",
    complexity="n² d",
    params=SigmoidParams,
    rows_sum_to_one=False,
    source=Paper(
        "Theory, Analysis, and Best Practices for Sigmoid Self-Attention", 2024, "https://arxiv.org/abs/2409.04431"
    ),
)
