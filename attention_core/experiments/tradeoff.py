"""What one gets for what one pays: the rows of the error experiment as points, and the offers worth taking."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_core.experiments.task import Row
from attention_core.variant import Value

BAND = (0.25, 0.5, 0.75)
"""Quantiles over heads and seeds: the edges of the band, which holds the middle half, and the median."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One variant with its settings at one length, its heads and seeds put together.

    Attributes:
        variant: its key, or ``"uniform"``.
        word: the variant and its settings, or ``"uniform"``.
        reference: what it is held against.
        setting: its budget's name, if it has one.
        value: its budget.
        n: tokens.
        multiply_adds: for one head.
        low: the lower quartile over heads and seeds.
        middle: the median error.
        high: the upper quartile.
        floor: the median of the floors beneath the matrix error, where they were found.
        floor_kind: what bounds most of them: ``"rank"``, ``"keys"`` or nothing.
    """

    variant: str
    word: str
    reference: str
    setting: str | None
    value: Value | None
    n: int
    multiply_adds: int
    low: float
    middle: float
    high: float
    floor: float | None
    floor_kind: str


def points(rows: Iterable[Row], measure: str) -> list[Point]:
    """Put heads and seeds together, in the order in which the rows came.

    Args:
        rows: of ``experiments.error.run``.
        measure: one of its ``MEASURES``.
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["word"], row["reference"], row["n"]), []).append(row)
    return [_point(group, measure) for group in groups.values()]


def pareto_front(offers: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """The offers that no other beats in both respects, as places in ``offers``, cheapest first.

    An offer is beaten by one that costs no more and errs no more, and does better in at least one. Offers that are
    equal in both stand or fall together; one that is not finite is on no front.

    Args:
        offers: cost and error of each.
    """
    finite = [i for i, offer in enumerate(offers) if all(map(math.isfinite, offer))]
    front: list[int] = []
    for i in sorted(finite, key=offers.__getitem__):
        if not front or offers[i][1] < offers[front[-1]][1] or offers[i] == offers[front[-1]]:
            front.append(i)
    return tuple(front)


def best_within(offers: Iterable[Point], multiply_adds: float) -> Point | None:
    """The point with the least error among those that cost no more; of equal ones the cheapest."""
    able = [p for p in offers if p.multiply_adds <= multiply_adds and math.isfinite(p.middle)]
    return min(able, key=lambda p: (p.middle, p.multiply_adds), default=None)


def _point(group: list[dict[str, Any]], measure: str) -> Point:
    first = group[0]
    # Quantiles that are values of the sample: a mean with an infinite neighbour would be none.
    low, middle, high = np.quantile([row[measure] for row in group], BAND, method="inverted_cdf").tolist()
    floors = [row["floor"] for row in group if "floor" in row]
    kinds = [row["floor_kind"] for row in group if "floor" in row]
    return Point(
        low=low,
        middle=middle,
        high=high,
        floor=float(np.quantile(floors, BAND[1], method="inverted_cdf")) if len(floors) == len(group) else None,
        floor_kind=max(kinds, key=kinds.count, default=""),
        **{name: first[name] for name in ("variant", "word", "reference", "setting", "value", "n", "multiply_adds")},
    )
