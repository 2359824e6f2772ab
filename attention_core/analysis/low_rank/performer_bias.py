"""The bias of Performer's similarities: their mean over all draws, in closed form, and the mean of many actual draws.

With ``x = q / d^¼`` and ``y = k / d^¼``, a positive feature's product is ``exp(w·(x + y) - (‖x‖² + ‖y‖²) / 2)``. For
directions ``w ~ N(0, I)`` its mean is the true value ``exp(x·y)``. For directions of fixed length √d it is the true
value times ``₀F₁(; d/2; d s² / 4) e^{-s²/2}`` with ``s = ‖x + y‖``, because the mean of ``e^{w·u}`` over a sphere is a
Bessel function. This factor is 1 for s = 0 and decreases with s.

A hyperbolic feature is a positive feature and its mirror image, with the same mean. A trigonometric feature has the
factor ``₀F₁(; d/2; -d t² / 4) e^{t²/2}`` with ``t = ‖x - y‖``. ``relu`` is unbiased for both kinds of length, because
only the mean squared length counts. Orthogonal directions are each uniform, so they change no mean.
"""

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.variant import Attention
from attention_core.variants.kernel.performer import PerformerParams, directions, estimate_and_kernel

DRAWS = 100
"""Maximum number of draws that are averaged; this reduces random errors tenfold."""
DIRECTIONS = 16_384
"""Maximum number of directions in all draws together, which take about a second."""
TOKENS = 256
"""Number of first tokens that are used, because every draw makes an n x n matrix."""
SEEDS = 2**31
"""Number of seeds; after the last seed, counting continues from 0."""
SMALLEST = -745.0
"""Logarithm of the smallest positive float64."""
LARGEST = 1400.0
"""Largest ``t²`` for which ``e^{t²/2}`` is finite in float64."""


class Means(CompactRepr):
    """The means of similarity estimates on the first tokens of a head.

    Attributes:
        truth: true similarities, divided by the largest of each row, ``[n, n]`` float64.
        drawn: mean of ``draws`` draws, divided by the same numbers.
        share: mean over all draws, divided by the truth; NaN if it exceeds the range of float64.
        draws: number of draws.
    """

    truth: np.ndarray
    drawn: np.ndarray
    share: np.ndarray
    draws: int


def means(qkv: QKV, attention: Attention, *, head: int) -> Means:
    """Compute the mean of many draws and the exact mean over all draws; no pair is masked.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        attention: Performer with its settings; its seed is the first seed.
        head: index of the head.
    """
    p = attention.params
    assert isinstance(p, PerformerParams)
    q, k = (x[head, :TOKENS].double() for x in (qkv.q, qkv.k))
    drawn = truth = torch.zeros(len(q), len(q), dtype=torch.float64)
    draws = min(DRAWS, max(2, DIRECTIONS // p.features))
    for number in range(draws):
        W = directions(q, replace(p, seed=(p.seed + number) % SEEDS))
        estimate, truth = estimate_and_kernel(q, k, W, p)
        drawn = drawn + estimate / draws
    share = mean_share(q, k, kind=p.kind, row_norms=p.row_norms)
    return Means(truth=truth.numpy(), drawn=drawn.numpy(), share=share.numpy(), draws=draws)


def pair_sizes(qkv: QKV, head: int) -> np.ndarray:
    """Compute ``‖x + y‖²`` of each pair of a head, ``float64 [n, n]``, the argument of ``chance``.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        head: index of the head.
    """
    x, y = (part[head].double() * part.shape[-1] ** -0.25 for part in (qkv.q, qkv.k))
    sums: np.ndarray = (x.square().sum(-1)[:, None] + y.square().sum(-1) + 2 * x @ y.mT).numpy()
    return sums


def chance(square: float) -> float:
    """Return the logarithm of the relative standard deviation of one positive feature, ``√(e^s² - 1)``, given s²."""
    return (square + math.log(max(-math.expm1(-square), float(np.finfo(np.float32).tiny)))) / 2


def mean_share(q: Tensor, k: Tensor, *, kind: str, row_norms: str) -> Tensor:
    """Compute the mean over all draws divided by the truth for each pair, ``[..., n, n]`` float64; 1 is unbiased.

    Args:
        q: queries, ``[..., n, d]``.
        k: keys, ``[..., n, d]``.
        kind: one of ``performer.KINDS``.
        row_norms: ``"chi"`` or ``"fixed"``.
    """
    d = q.shape[-1]
    x, y = (part.double() * d**-0.25 for part in (q, k))
    squares = x.square().sum(-1, keepdim=True) + y.square().sum(-1, keepdim=True).mT
    if row_norms == "chi" or kind == "relu":
        return torch.ones_like(squares)
    if kind == "trig":
        return trig_share((squares - 2 * x @ y.mT).clamp_min(0.0), d)
    return exponential_share((squares + 2 * x @ y.mT).clamp_min(0.0), d)


def exponential_share(squares: Tensor, d: int) -> Tensor:
    """Compute ``₀F₁(; d/2; d s² / 4) e^{-s²/2}`` from ``s²``, in float64; the result is between 0 and 1.

    The series has positive terms only, which are summed by their logarithms.

    Args:
        squares: ``s² >= 0``, of any shape.
        d: head size.
    """
    squares = squares.double()
    sizes = squares.sqrt()
    # The result is at most e^{√d s - s²/2}; if this underflows, the result is zero.
    kept = math.sqrt(d) * sizes - squares / 2 > SMALLEST
    z = torch.where(kept, squares * d / 4, 0.0)
    log_z, log_term, log_sum, i = z.log(), torch.zeros_like(z), torch.zeros_like(z), 0
    while i**2 <= float(z.max()) or bool((log_term > log_sum - 40).any()):
        log_term = log_term + log_z - math.log((i + 1) * (d / 2 + i))
        log_sum, i = torch.logaddexp(log_sum, log_term), i + 1
    return torch.where(kept, (log_sum - squares / 2).exp(), 0.0)


def positive_bias(square: float, d: int) -> float:
    """Return the relative bias of positive features of fixed length, from 0 to 1.

    Args:
        square: the pair's ``‖x + y‖²``.
        d: head size.
    """
    return 1.0 - float(exponential_share(torch.tensor(square), d))


def trig_share(squares: Tensor, d: int) -> Tensor:
    """Compute ``₀F₁(; d/2; -d t² / 4) e^{t²/2}`` from ``t²``, in float64: 1 at 0, then of either sign and any size.

    The alternating series would lose digits by cancellation. Instead, the recurrence over ``₀F₁(; d/2 + j; ·)`` runs
    downwards (Miller) from a j at which the series is short.

    Args:
        squares: ``t² >= 0``, of any shape; the result is NaN if ``e^{t²/2}`` exceeds float64.
        d: head size.
    """
    squares = squares.double()
    kept = squares <= LARGEST
    z, a = torch.where(kept, squares * d / 4, 0.0), d / 2
    top = math.ceil(float(z.max()) / 4) + 1
    above, here = (_alternating(z, a + j) for j in (top + 1, top))
    for j in range(top, 0, -1):
        above, here = here, here - z / ((a + j - 1) * (a + j)) * above
    return torch.where(kept, here * (squares / 2).exp(), torch.nan)


def _alternating(z: Tensor, b: float) -> Tensor:
    """Compute ``₀F₁(; b; -z)`` by its series, for z at most 4 b."""
    term = total = torch.ones_like(z)
    for i in range(60):
        term = term * -z / ((i + 1) * (b + i))
        total = total + term
    return total
