"""Entmax: functions between softmax (α → 1) and sparsemax (α = 2), which set small weights to exactly zero.

Sparsemax is the projection of the logits onto the simplex. A weight is zero if ``(α-1)`` times its logit is below a
threshold τ, which has no closed form for most α. Newton's method finds τ from below. It converges because the sum of
a row is a convex function of τ.
"""

import math
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.softmax.blockwise import RowBlock, blockwise_attention, largest_block, n_pairs
from attention_core.ops.softmax.masked import at_least_float32, causal_mask, scores
from attention_core.variant import LOGITS, Cost, Intermediate, Paper, Params, Variant, param

STEPS = 200
"""Most steps of Newton's method; α = 1.5 takes about ten, α = 1.1 about fifty."""


class EntmaxParams(Params):
    """Settings of entmax."""

    alpha: float = param(
        1.5,
        low=1.1,
        high=2.0,
        step=0.05,
        help="α sets how sparse the weights are: the larger α is, the more weights are exactly zero. At 1.1, the "
        "result is close to softmax. At 2 (sparsemax), each row of weights is as close as possible to its logits, "
        "among all non-negative weights that sum to one.",
    )


def entmax(logits: Tensor, alpha: float) -> Tensor:
    """Return the entmax weights ``[(α-1) z - τ]₊^{1/(α-1)}`` of logits z, ``[..., n]``; τ makes each row sum to one.

    A logit of ``-inf`` gets weight 0. The largest logit of each row is subtracted first, because large logits would
    make τ too coarse. The gradient is exact: autograd records one more Newton step, in which τ depends on the
    logits.
    """
    x, exponent = (alpha - 1) * (logits - logits.detach().amax(-1, keepdim=True)), 1 / (alpha - 1)
    tau = _find_tau(x.detach(), exponent)
    excess, slope = _excess_and_slope(x - tau, exponent)
    return (x - tau - excess / slope.detach()).clamp_min(0).pow(exponent)


def threshold(logits: Tensor, alpha: float) -> Tensor:
    """Return the logit ``τ / (α-1)`` of each row above which a key has a positive weight, ``[..., 1]``."""
    largest = logits.amax(-1, keepdim=True)
    return largest + _find_tau((alpha - 1) * (logits - largest), 1 / (alpha - 1)) / (alpha - 1)


def _find_tau(x: Tensor, exponent: float) -> Tensor:
    """Find the τ at which ``[x - τ]₊^exponent`` sums to one, ``[..., 1]``, by Newton's method from below.

    The largest entry of each row of ``x`` must be 0, so that τ lies between -1 and 0.
    """
    tau = torch.full_like(x[..., :1], -1.0)  # at τ = -1, the weights of a row sum to one or more
    for _ in range(STEPS):
        excess, slope = _excess_and_slope(x - tau, exponent)
        step = excess / slope
        tau = tau + step
        if x.is_meta or not bool((step > 4 * torch.finfo(x.dtype).eps * (1 + tau.abs())).any()):
            break
    return tau


def _excess_and_slope(shifted: Tensor, exponent: float) -> tuple[Tensor, Tensor]:
    """Return the row sums of ``[shifted]₊^exponent`` minus one, and how fast they decrease with τ, ``[..., 1]``."""
    positive = shifted.clamp_min(0)
    slope = exponent * (positive.pow(exponent - 1) * (positive > 0)).sum(-1, keepdim=True)
    return positive.pow(exponent).sum(-1, keepdim=True) - 1, slope


def masked_logits(q: Tensor, k: Tensor, *, causal: bool) -> Tensor:
    """Compute ``q kᵀ / √d``, with ``-inf`` for the keys that a causal mask hides, ``[..., n, n]``."""
    logits = scores(q, k)
    return logits.masked_fill(~causal_mask(q.shape[-2], q.device), -math.inf) if causal else logits


def weights(q: Tensor, k: Tensor, p: EntmaxParams, *, causal: bool) -> Tensor:
    """Compute ``entmax_α(q kᵀ / √d)``, ``[..., n, n]``."""
    return entmax(masked_logits(q, k, causal=causal), p.alpha)


def definition(q: Tensor, k: Tensor, v: Tensor, p: EntmaxParams, *, causal: bool) -> Tensor:
    """Compute ``[(α-1) z - τ]₊^{1/(α-1)} v``, ``[..., n, d_v]``, of logits z; bisection finds the τ of each row."""
    z = (p.alpha - 1) * masked_logits(q, k, causal=causal)  # [..., n, n]
    high = z.amax(-1, keepdim=True)  # at this τ all weights of a row are 0; at τ - 1 they sum to 1 or more
    low = high - 1
    for _ in range(60):
        tau = (low + high) / 2
        above = (z - tau).relu().pow(1 / (p.alpha - 1)).sum(-1, keepdim=True) > 1
        low, high = torch.where(above, tau, low), torch.where(above, high, tau)
    return (z - low).relu().pow(1 / (p.alpha - 1)) @ v


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock, p: EntmaxParams) -> Tensor:
    return entmax(rows.fill_future(scores(q, k), -math.inf), p.alpha)


def attend(q: Tensor, k: Tensor, v: Tensor, p: EntmaxParams, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    return blockwise_attention(partial(_row_weights, p=p), q, k, v, causal=causal)


def cost(n: int, d: int, p: EntmaxParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products with k and v, by blocks of queries; memory for the output and 6 blocks of weights."""
    return Cost(
        multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys),
        peak_elements=n * d + 6 * largest_block(n, keys=keys),
    )


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: EntmaxParams, *, causal: bool) -> dict[str, Tensor]:
    """Return ``logits``, ``[..., n, n]``, and the logit that is the ``threshold`` of each row, ``[..., n]``.

    ``weights = [(α-1)(logits - threshold)]₊^{1/(α-1)}``.
    """
    logits = scores(at_least_float32(q), at_least_float32(k))
    masked = masked_logits(at_least_float32(q), at_least_float32(k), causal=causal)
    return {"logits": logits, "threshold": threshold(masked, p.alpha).squeeze(-1)}


VARIANT = Variant(
    __name__,
    title="Entmax",
    summary="Like softmax, but each row has a threshold, and keys with logits below the threshold get a weight of "
    "exactly zero.",
    formula=r"A_{ij} = \left[(\alpha - 1)\, \frac{q_i^\top k_j}{\sqrt d} - \tau_i\right]_+^{1/(\alpha-1)},"
    r"\quad \textstyle\sum_j A_{ij} = 1",
    complexity="n² d",
    params=EntmaxParams,
    intermediates=(
        LOGITS,
        Intermediate(
            name="threshold",
            title="Thresholds",
            symbol="t_i",
            formula=r"\textstyle\sum_j \left[(\alpha - 1)\left(x_{ij} - t_i\right)\right]_+^{1/(\alpha-1)} = 1",
            mechanism="Each row has one threshold. Keys with a logit below the threshold get a weight of exactly "
            "zero. The weights of the other keys sum to one.",
            rows="query",
        ),
    ),
    source=Paper("Sparse Sequence-to-Sequence Models", 2019, "https://arxiv.org/abs/1905.05702"),
    further=(
        Paper(
            "From Softmax to Sparsemax: A Sparse Model of Attention and Multi-Label Classification",
            2016,
            "https://arxiv.org/abs/1602.02068",
        ),
    ),
)
