"""How fast something grows: a power law through measured points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_POSITIONS, LEAST_SPAN = 3, 4.0
"""Positions, and the ratio of the largest to the smallest, below which no exponent of growth is stated."""
TAIL = 4
"""Positions at the end that are fitted again, to find out whether the curve bends."""
BEND = 0.1
"""Difference of the two exponents from which on a curve counts as bending."""


@dataclass(frozen=True, kw_only=True)
class PowerFit:
    """The line ``y = factor · x^exponent``, straight on two logarithmic axes.

    Attributes:
        exponent: its slope there: 1 where y doubles with x, 2 where it then quadruples, 0 where it stays.
        log_factor: natural logarithm of its value at x = 1.
        r2: share of the variance of log y that the line explains, from 0 to 1; 1 where y does not vary.
    """

    exponent: float
    log_factor: float
    r2: float

    @property
    def factor(self) -> float:
        """Its value at x = 1; infinite beyond what a number holds."""
        return self.at(1.0)

    def at(self, x: float) -> float:
        """Its value at x > 0; infinite beyond what a number holds."""
        try:
            return math.exp(self.log_factor + self.exponent * math.log(x))
        except OverflowError:
            return math.inf


def fit_power(x: Sequence[float], y: Sequence[float]) -> PowerFit:
    """Fit ``y = factor · x^exponent`` by least squares on the logarithms.

    Args:
        x: positions, positive, at least two different ones.
        y: values, positive, one per position.

    Raises:
        ValueError: if these conditions do not hold.
    """
    points = np.array([x, y], dtype=np.float64)
    if not (np.isfinite(points) & (points > 0)).all():
        raise ValueError("a power law takes positive finite numbers")
    if len(set(x)) < 2:
        raise ValueError("a power law takes at least two different positions")
    u, w = np.log(points)
    du, dw = u - u.mean(), w - w.mean()
    exponent = float(du @ dw / (du @ du))
    left, spread = float(((dw - exponent * du) ** 2).sum()), float(dw @ dw)
    # Equal values differ by rounding at most, and then there is nothing to explain.
    flat = spread <= len(u) * (4 * np.finfo(np.float64).eps * max(1.0, float(abs(w).max()))) ** 2
    return PowerFit(
        exponent=exponent,
        log_factor=float(w.mean()) - exponent * float(u.mean()),
        r2=1.0 if flat else 1.0 - left / spread,
    )


def fit_growth(x: Sequence[float], y: Sequence[float]) -> PowerFit | None:
    """Fit a power law to a curve whose exponent is to be stated as its growth.

    Args:
        x: positions, positive, ascending.
        y: values, positive, one per position.

    Returns:
        None from fewer than ``LEAST_POSITIONS`` positions, or from positions within a factor of ``LEAST_SPAN``.
    """
    if len(x) < LEAST_POSITIONS or x[-1] < LEAST_SPAN * x[0]:
        return None
    return fit_power(x, y)


def fit_bend(x: Sequence[float], y: Sequence[float]) -> PowerFit | None:
    """Fit the last ``TAIL`` positions alone; None where their exponent is within ``BEND`` of the whole curve's.

    Args:
        x: positions, positive, ascending.
        y: values, positive, one per position.
    """
    whole = fit_growth(x, y)
    if whole is None or len(x) <= TAIL:
        return None
    tail = fit_power(x[-TAIL:], y[-TAIL:])
    return tail if abs(tail.exponent - whole.exponent) > BEND else None
