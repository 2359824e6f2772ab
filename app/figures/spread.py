"""Many measurements at each position as one line with a band: the middle, and the quartiles around it."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

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
    groups = pd.DataFrame(points, columns=["x", "y"], dtype=float).groupby("x")["y"]
    low, middle, high = (tuple(groups.quantile(share)) for share in (0.25, 0.5, 0.75))
    return Spread(x=tuple(groups.groups), middle=tuple(groups.mean()) if mean else middle, low=low, high=high)
