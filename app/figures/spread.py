"""Many measurements at each position as one line with a band: the middle, and the quartiles around it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
    gathered = [sorted(groups[x]) or [math.nan] for x in places]
    low, middle, high = (tuple(_quantile(own, share) for own in gathered) for share in SHARES)
    if mean:
        middle = tuple(sum(own) / len(own) for own in gathered)
    return Spread(x=places, middle=middle, low=low, high=high)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """As ``numpy.quantile``, which takes a tenth of a millisecond: a table of heads asks for hundreds."""
    place, part = divmod(share * (len(ordered) - 1), 1.0)
    here, there = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
    return here + (there - here) * part if part and there != here else here
