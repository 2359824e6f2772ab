"""What a timing run says: how fast each variant grows, how it compares with softmax, and from which length it pays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attention_core.benchmarking.records import Point, Run
from attention_core.metrics.fit import PowerFit, fit_power

REFERENCE = "softmax"
TAIL = 4
"""Lengths that an exponent is fitted through, the longest ones: below them a call's fixed costs hide its growth."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A variant's time over softmax's at one length: quartiles over the rounds, each round within itself."""

    n: int
    low: float
    middle: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """From which length on a variant is faster than softmax.

    Attributes:
        where: ``"at"`` a length; ``"below"`` the shortest measured one: faster at all; ``"beyond"`` the longest: slower
            there; ``"even"``: at the longest the quartiles of the ratio lie on both sides of one.
        tokens: that length; the shortest or the longest measured one where it is not crossed.
        slower: the longest measured length up to which the lower quartile of the ratio is at least one; None without
            one, or where nothing is crossed.
        faster: the shortest measured length from which on the upper quartile is below one; None where nothing is
            crossed.
    """

    where: Literal["at", "below", "beyond", "even"]
    tokens: float
    slower: int | None = None
    faster: int | None = None


def of_variant(run: Run, word: str) -> list[Point]:
    """A variant's points, lengths rising."""
    return sorted((point for point in run.points if point.variant == word), key=lambda point: point.n)


def reference(run: Run) -> str | None:
    """The word of softmax in this run, whatever its settings; None where it was not measured."""
    return next((point.variant for point in run.points if point.variant.partition("~")[0] == REFERENCE), None)


def ratios(run: Run, word: str) -> list[Ratio]:
    """A variant's time over softmax's at every length where both were measured; empty where softmax was not."""
    base = {point.n: point for point in run.points if point.variant == reference(run)}
    found = []
    for point in of_variant(run, word):
        if point.n in base:
            # Samples of one round lie close in time, so a machine that slows down for both changes no ratio.
            pairs = [own / full for own, full in zip(point.ms, base[point.n].ms, strict=False)]
            low, middle, high = np.quantile(pairs, (0.25, 0.5, 0.75)).tolist()
            found.append(Ratio(n=point.n, low=low, middle=middle, high=high))
    return found


def crossing(ratios: Sequence[Ratio]) -> Crossing | None:
    """The length from which on every measured ratio is below one, on a straight line between logarithms.

    Args:
        ratios: of one variant, lengths rising.

    Returns:
        None where there are none.
    """
    if not ratios:
        return None
    last = ratios[-1]
    if last.low <= 1 <= last.high:
        return Crossing(where="even", tokens=last.n)
    if last.middle >= 1:
        return Crossing(where="beyond", tokens=last.n)
    above = [i for i, ratio in enumerate(ratios) if ratio.middle >= 1]
    if not above:
        return Crossing(where="below", tokens=ratios[0].n)
    a, b = ratios[above[-1]], ratios[above[-1] + 1]
    share = math.log(a.middle) / (math.log(a.middle) - math.log(b.middle))
    return Crossing(
        where="at",
        tokens=math.exp(math.log(a.n) + share * (math.log(b.n) - math.log(a.n))),
        slower=max((r.n for r in ratios[: above[-1] + 1] if r.low >= 1), default=None),
        faster=min(r.n for r in ratios if all(later.high < 1 for later in ratios if later.n >= r.n)),
    )


@dataclass(frozen=True, kw_only=True)
class Overtaking:
    """Where a variant overtakes softmax, and the measured times on either side.

    Attributes:
        tokens: from which length on it is faster.
        ms: softmax's time there, on a straight line between logarithms.
        before: the longest length measured up to there, the variant's median and softmax's, ms.
        after: the same of the shortest length beyond.
    """

    tokens: float
    ms: float
    before: tuple[int, float, float]
    after: tuple[int, float, float]


def overtaking(run: Run, word: str) -> Overtaking | None:
    """Where a variant overtakes softmax between two measured lengths; None where it does not."""
    at = crossing(ratios(run, word))
    if at is None or at.where != "at":
        return None
    full = {point.n: point.quartiles[1] for point in of_variant(run, reference(run) or "")}
    both = [(point.n, point.quartiles[1], full[point.n]) for point in of_variant(run, word) if point.n in full]
    before = next(each for each in reversed(both) if each[0] <= at.tokens)
    after = next(each for each in both if each[0] > at.tokens)
    share = math.log(at.tokens / before[0]) / math.log(after[0] / before[0])
    ms = math.exp(math.log(before[2]) + share * math.log(after[2] / before[2]))
    return Overtaking(tokens=at.tokens, ms=ms, before=before, after=after)


def growth(sizes: Sequence[int], values: Sequence[float]) -> PowerFit | None:
    """The power law through the longest ``TAIL`` lengths; None where there are not two, or a value is zero."""
    x, y = sizes[-TAIL:], values[-TAIL:]
    return fit_power(x, y) if len(x) > 1 and min(y) > 0 else None
