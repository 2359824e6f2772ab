"""How fast something grows: a power law through measured points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
