"""Squared ReLU attention: squared ReLU replaces the exponential, so keys with a negative logit get weight zero."""

from functools import partial

import torch
from torch import Tensor

from attention_core.ops.softmax.blockwise import RowBlock, block_size, blockwise_attention, n_pairs
from attention_core.ops.softmax.masked import causal_mask, key_counts, normalise_rows, safe_divisor, scores
from attention_core.variant import LOGITS, Cost, Intermediate, Paper, Params, Variant, param


class Relu2Params(Params):
    """Settings of squared ReLU."""

    normalizer: str = param(
        "length",
        choices=("length", "squared", "fixed", "sum"),
        help='Number by which each row is divided. "length" is the number of keys that the query can attend to, and '
        '"squared" is the square of this number. "fixed" is the value of the setting “base length”. "sum" is the sum '
        "of the row.",
    )
    base_length: int = param(
        512,
        low=1,
        high=65_536,
        scale="log",
        help='Fixed number by which each row is divided. Used only with the normalizer "fixed".',
    )


def weights(q: Tensor, k: Tensor, p: Relu2Params, *, causal: bool) -> Tensor:
    """Compute ``relu²(q kᵀ / √d) / Z_i``, ``[..., n, n]``; zeros if Z_i is 0.

    The setting ``normalizer`` selects the divisor Z_i of row i.
    """
    squares = scores(q, k).relu().square()  # [..., n, n]
    if causal:
        squares = squares.tril()
    counts, row_sums = key_counts(k, causal=causal).to(q), squares.sum(-1, keepdim=True)  # [n, 1] and [..., n, 1]
    fixed = torch.full_like(row_sums, p.base_length)
    Z = {"length": counts, "squared": counts.square(), "fixed": fixed, "sum": row_sums}[p.normalizer]
    return squares / safe_divisor(Z)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: Relu2Params, *, causal: bool) -> dict[str, Tensor]:
    """Return the matrix before normalisation and the divisors Z of all normalizers; ``weights = squares / Z``.

    ``logits`` and ``squares``, ``[..., n, n]``, are zero for hidden keys. ``length``, ``squared``, ``fixed`` and
    ``sum``, ``[..., n]``, are the divisors of the rows, named after the normalizers.
    """
    logits = scores(q, k)  # [..., n, n]
    if causal:
        logits = logits.masked_fill(~causal_mask(q.shape[-2], q.device), 0.0)
    squares = logits.relu().square()  # [..., n, n]
    row_sums = squares.sum(-1)  # [..., n]
    counts = key_counts(k, causal=causal)[:, 0].to(row_sums).expand_as(row_sums)
    fixed = torch.full_like(row_sums, p.base_length)
    divisors = {"length": counts, "squared": counts.square(), "fixed": fixed, "sum": row_sums}
    return {"logits": logits, "squares": squares} | divisors


COUNT_EXPONENTS = {"length": -0.5, "squared": -1.0}
"""Exponents by normalizer: each query is multiplied by this power of the number of its visible keys."""


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock, p: Relu2Params) -> Tensor:
    # A divisor of relu²(x) can be applied to the queries as its square root, because relu²(a x) = a² relu²(x). This
    # scales n queries instead of n² scores.
    q = q * (q.shape[-1] * (p.base_length if p.normalizer == "fixed" else 1)) ** -0.5
    if p.normalizer in COUNT_EXPONENTS:
        q = q * rows.key_counts(q.device).pow(COUNT_EXPONENTS[p.normalizer]).to(q)
    squares = rows.fill_future(q @ k.mT, 0.0).relu_().square()
    return normalise_rows(squares) if p.normalizer == "sum" else squares


def attend(q: Tensor, k: Tensor, v: Tensor, p: Relu2Params, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    return blockwise_attention(partial(_row_weights, p=p), q, k, v, causal=causal)


def cost(n: int, d: int, p: Relu2Params, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products with k and v, by blocks of queries; memory for the output and 2 blocks of weights."""
    return Cost(
        multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys),
        peak_elements=n * d + block_size(n) * (2 * (keys or n) + d),
    )


VARIANT = Variant(
    __name__,
    title="Squared ReLU",
    summary="The squared ReLU of the logit replaces softmax's exponential, so keys with negative logits get weight "
    "zero.",
    formula=r"A_{ij} = \frac{1}{Z_i}\operatorname{relu}^2\left(\frac{q_i \cdot k_j}{\sqrt{d}}\right),"
    r"\quad Z_i = n_i,\; n_i^2,\; n_0 \text{ or } \textstyle\sum_l \operatorname{relu}^2(\cdot)",
    complexity="n² d",
    params=Relu2Params,
    intermediates=(
        LOGITS,
        Intermediate(
            name="squares",
            title="Squares",
            symbol="s",
            formula=r"s_{ij} = \operatorname{relu}(x_{ij})^2",
            mechanism="Negative logits are set to zero, and positive logits are squared.",
        ),
        Intermediate(
            name="sum",
            title="Row sums",
            symbol="z_i",
            formula=r"z_i = \sum_l s_{il},\qquad A_{ij} = \frac{s_{ij}}{Z_i},\qquad "
            r"Z_i = n_i,\; n_i^2,\; n_0 \text{ or } z_i",
            mechanism="Each row is divided by a normaliser Z. Unlike in softmax, Z can differ from the sum of the row.",
        ),
    ),
    source=Paper("Transformer Quality in Linear Time", 2022, "https://arxiv.org/abs/2202.10447"),
    rows_sum_to_one=False,
    note='The weights of a row sum to one only with the normalizer "sum". A row without a positive logit is an '
    "exception: all its weights are zero.",
)
