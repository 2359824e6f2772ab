"""Many measurements at each position as one line with a band: the middle, and the quartiles around it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.figures.curves import Curve


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Measurements gathered by position, ascending.

    Attributes:
        x: the positions.
        middle: the median (or the mean) at each.
        low: the lower quartile.
        high: the upper quartile.
    """

    x: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def curve(self, name: str, colour: int, *, dash: str = "solid", band: bool = True) -> Curve:
        """As a line, with its band where there is more than one position."""
        shown = band and len(self.x) > 1
        return Curve(
            name=name,
            x=self.x,
            y=self.middle,
            low=self.low if shown else None,
            high=self.high if shown else None,
            colour=colour,
            dash=dash,
        )


def spread(points: Iterable[tuple[float, float]], *, mean: bool = False) -> Spread:
    """Gather measurements ``(x, y)`` by x.

    Args:
        points: in any order.
        mean: whether the middle is the mean; the band stays the quartiles.
    """
    by_x: dict[float, list[float]] = {}
    for x, y in points:
        by_x.setdefault(x, []).append(y)
    found = [(x, np.quantile(by_x[x], (0.25, 0.5, 0.75)), np.mean(by_x[x])) for x in sorted(by_x)]
    return Spread(
        x=tuple(x for x, _, _ in found),
        middle=tuple(float(average if mean else quartiles[1]) for _, quartiles, average in found),
        low=tuple(float(quartiles[0]) for _, quartiles, _ in found),
        high=tuple(float(quartiles[2]) for _, quartiles, _ in found),
    )
