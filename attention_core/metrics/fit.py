"""Power-law fits to measured points, which estimate how fast a quantity grows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MIN_POSITIONS, MIN_SPAN = 3, 4.0
"""Minimum number of positions, and minimum ratio of the largest to the smallest, for stating an exponent of growth."""
TAIL_POSITIONS = 4
"""Number of positions at the end that are fitted separately, to detect whether the curve bends."""
MIN_BEND = 0.1
"""Minimum difference of the two exponents for which a curve counts as bending."""


@dataclass(frozen=True, kw_only=True)
class PowerFit:
    """A power law ``y = factor · x^exponent``, a straight line on two logarithmic axes.

    Attributes:
        exponent: slope of that line; if x doubles, y is multiplied by ``2^exponent``.
        log_factor: natural logarithm of y at x = 1.
        r2: share of the variance of log y that the line explains, from 0 to 1; 1 if y is constant.
    """

    exponent: float
    log_factor: float
    r2: float

    @property
    def factor(self) -> float:
        """The value y at x = 1; infinite if a float cannot hold it."""
        return self.at(1.0)

    def at(self, x: float) -> float:
        """Return the value y at x > 0; infinite if a float cannot hold it."""
        try:
            return math.exp(self.log_factor + self.exponent * math.log(x))
        except OverflowError:
            return math.inf


def fit_power(x: Sequence[float], y: Sequence[float]) -> PowerFit:
    """Fit ``y = factor · x^exponent`` by least squares on the logarithms.

    Args:
        x: positive positions, of which at least two differ.
        y: positive values, one per position.

    Raises:
        ValueError: if x or y does not satisfy these conditions.
    """
    points = np.array([x, y], dtype=np.float64)
    if not (np.isfinite(points) & (points > 0)).all():
        raise ValueError("a power law can be fitted only to positive finite numbers")
    if len(set(x)) < 2:
        raise ValueError("a power law can be fitted only to two or more different positions")
    u, w = np.log(points)
    du, dw = u - u.mean(), w - w.mean()
    exponent = float(du @ dw / (du @ du))
    residual, variance = float(((dw - exponent * du) ** 2).sum()), float(dw @ dw)
    # If all values are equal up to rounding errors, there is no variance for the fit to explain, and r2 is 1.
    is_constant = variance <= len(u) * (4 * np.finfo(np.float64).eps * max(1.0, float(abs(w).max()))) ** 2
    return PowerFit(
        exponent=exponent,
        log_factor=float(w.mean()) - exponent * float(u.mean()),
        r2=1.0 if is_constant else 1.0 - residual / variance,
    )


def fit_growth(x: Sequence[float], y: Sequence[float]) -> PowerFit | None:
    """Fit a power law to a curve, to show the exponent as the growth rate of the curve.

    Args:
        x: positive positions, ascending.
        y: positive values, one per position.

    Returns:
        The fit; None for fewer than ``MIN_POSITIONS`` positions or if they span less than a factor ``MIN_SPAN``.
    """
    if len(x) < MIN_POSITIONS or x[-1] < MIN_SPAN * x[0]:
        return None
    return fit_power(x, y)


def fit_entropy(lengths: Sequence[float], nats: Sequence[float]) -> PowerFit | None:
    """Fit a power law to ``exp H`` over n; its exponent is the slope of the entropy H over log n.

    Return None under the same conditions as ``fit_growth``.
    """
    return fit_growth(lengths, [math.exp(h) for h in nats])


def fit_bend(x: Sequence[float], y: Sequence[float]) -> PowerFit | None:
    """Fit the last ``TAIL_POSITIONS`` positions of a curve that bends.

    Args:
        x: positive positions, ascending.
        y: positive values, one per position.

    Returns:
        The fit; None if its exponent is within ``MIN_BEND`` of the whole curve's, or if the curve is too short.
    """
    whole = fit_growth(x, y)
    if whole is None or len(x) <= TAIL_POSITIONS:
        return None
    tail = fit_power(x[-TAIL_POSITIONS:], y[-TAIL_POSITIONS:])
    return tail if abs(tail.exponent - whole.exponent) > MIN_BEND else None
