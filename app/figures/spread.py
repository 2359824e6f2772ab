"""Many measurements at each position as one line with a band: the middle, and the quartiles around it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.figures.curves import Curve

SHARES = (0.25, 0.5, 0.75)
"""The quartiles and the median between them."""


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
            name,
            self.x,
            self.middle,
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
    groups: dict[float, list[float]] = {}
    for x, y in points:
        own = groups.setdefault(float(x), [])
        if y is not None and y == y:
            own.append(float(y))
    places = tuple(sorted(groups))
    gathered = [groups[x] or [np.nan] for x in places]
    if len({len(own) for own in gathered}) == 1:  # one call for all: a table of heads asks for a hundred spreads
        low, middle, high = np.quantile(gathered, SHARES, axis=1)
    else:
        low, middle, high = np.array([np.quantile(own, SHARES) for own in gathered]).reshape(-1, len(SHARES)).T
    if mean:
        middle = np.array([np.mean(own) for own in gathered])
    return Spread(x=places, middle=tuple(middle.tolist()), low=tuple(low.tolist()), high=tuple(high.tolist()))
