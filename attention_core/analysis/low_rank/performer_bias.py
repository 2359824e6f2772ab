"""Are Performer's similarities right in the mean? Their mean over all draws, in closed form, beside that of many draws.

With ``x = q / d^¼`` and ``y = k / d^¼`` a positive feature's product is ``exp(w·(x + y) - (‖x‖² + ‖y‖²) / 2)``. Over
directions ``w ~ N(0, I)`` its mean is the truth, ``exp(x·y)``. Over directions of fixed length √d it is the truth
times ``₀F₁(; d/2; d s² / 4) e^{-s²/2}`` with ``s = ‖x + y‖``: the mean of ``e^{w·u}`` over a sphere is a Bessel
function. That share is 1 for s = 0 and falls with s. A hyperbolic feature is a positive one and its mirror image and
has the same mean; a trigonometric one has ``₀F₁(; d/2; -d t² / 4) e^{t²/2}`` with ``t = ‖x - y‖``. ``relu`` is right
with both, as only the mean of a direction's squared length counts there. Orthogonal directions are each uniform, so
they change no mean.
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
"""Draws whose mean is taken, where they are of few features: chance then shrinks tenfold."""
DIRECTIONS = 16_384
"""Directions in all draws together, at most: so many take about a second."""
TOKENS = 256
"""First tokens that are looked at: every draw makes an n x n matrix."""
SEEDS = 2**31
"""Seeds there are: a count beyond the last goes on from 0."""
SMALLEST = -745.0
"""Logarithm of the least positive float64."""
LARGEST = 1400.0
"""Largest ``t²`` at which ``e^{t²/2}`` is still a float64."""


class Means(CompactRepr):
    """What the similarities' estimates are in the mean, on a head's first tokens.

    Attributes:
        truth: what they estimate, over each row's largest, ``[n, n]`` float64.
        drawn: the mean of ``draws`` draws, over the same.
        share: the mean over all draws, over the truth; NaN where it exceeds what a number can be.
        draws: how many.
    """

    truth: np.ndarray
    drawn: np.ndarray
    share: np.ndarray
    draws: int


def means(qkv: QKV, attention: Attention, *, head: int) -> Means:
    """Draw many times and take the mean, beside the mean over all draws; nothing is hidden.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        attention: Performer with its settings; its seed is the first of the draws.
        head: the head looked at.
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
    """``‖x + y‖²`` of each pair of a head, ``float64 [n, n]``, which rules a positive feature's ``chance``.

    Args:
        qkv: queries and keys, ``[H, n, d]``.
        head: the head.
    """
    x, y = (part[head].double() * part.shape[-1] ** -0.25 for part in (qkv.q, qkv.k))
    sums: np.ndarray = (x.square().sum(-1)[:, None] + y.square().sum(-1) + 2 * x @ y.mT).numpy()
    return sums


def chance(square: float) -> float:
    """The logarithm of one positive feature's relative standard deviation, ``√(e^s² - 1)``."""
    return (square + math.log(max(-math.expm1(-square), float(np.finfo(np.float32).tiny)))) / 2


def mean_share(q: Tensor, k: Tensor, *, kind: str, row_norms: str) -> Tensor:
    """The mean over all draws of each similarity's estimate, over its truth, ``[..., n, n]`` float64; 1 is unbiased.

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
    """``₀F₁(; d/2; d s² / 4) e^{-s²/2}`` of ``s²``, float64: between 0 and 1.

    Its series has positive terms only, summed by their logarithms.

    Args:
        squares: ``s² >= 0``, of any shape.
        d: head size.
    """
    squares = squares.double()
    sizes = squares.sqrt()
    # The share is at most e^{√d s - s²/2}: where even that is no number, it is zero.
    kept = math.sqrt(d) * sizes - squares / 2 > SMALLEST
    z = torch.where(kept, squares * d / 4, 0.0)
    log_z, log_term, log_sum, i = z.log(), torch.zeros_like(z), torch.zeros_like(z), 0
    while i**2 <= float(z.max()) or bool((log_term > log_sum - 40).any()):
        log_term = log_term + log_z - math.log((i + 1) * (d / 2 + i))
        log_sum, i = torch.logaddexp(log_sum, log_term), i + 1
    return torch.where(kept, (log_sum - squares / 2).exp(), 0.0)


def positive_bias(square: float, d: int) -> float:
    """What is missing of the truth in the mean over all positive features of fixed length, from 0 to 1.

    Args:
        square: the pair's ``‖x + y‖²``.
        d: head size.
    """
    return 1.0 - float(exponential_share(torch.tensor(square), d))


def trig_share(squares: Tensor, d: int) -> Tensor:
    """``₀F₁(; d/2; -d t² / 4) e^{t²/2}`` of ``t²``, float64: 1 at 0, and of either sign and any size further on.

    The series alternates and would cancel. The recurrence over neighbouring ``₀F₁(; d/2 + j; ·)`` does not, taken
    downwards (Miller) from a j at which the series is short.

    Args:
        squares: ``t² >= 0``, of any shape; NaN is returned where ``e^{t²/2}`` is beyond float64.
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
    """``₀F₁(; b; -z)`` by its series, for z of at most 4 b."""
    term = total = torch.ones_like(z)
    for i in range(60):
        term = term * -z / ((i + 1) * (b + i))
        total = total + term
    return total
