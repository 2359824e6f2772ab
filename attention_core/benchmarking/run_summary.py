"""Summaries of a timing run: growth exponents, and comparisons of each variant's time with softmax's time.

A comparison gives the ratio of both times, and the sequence length from which the variant is faster.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attention_core.benchmarking.run_records import Point, Run
from attention_core.metrics.fit import PowerFit, fit_power

REFERENCE = "softmax"
CLEAR_DIFFERENCE = 0.05
"""Smallest relative difference of two times that counts as a difference."""
FITTED_LENGTHS = 4
"""Number of longest sequence lengths used to fit an exponent; at shorter lengths fixed costs of a call dominate."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A variant's time divided by softmax's time at one length, computed within each round: median and quartiles."""

    n: int
    low: float
    middle: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """The sequence length from which a variant is faster than softmax.

    Attributes:
        where: ``"at"``: between measured lengths; ``"below"``: faster at all measured lengths; ``"beyond"``: slower at
            the longest one; ``"even"``: no clear difference at the longest length, where the ratio's quartiles are on
            both sides of one, or its median is less than ``CLEAR_DIFFERENCE`` from one.
        tokens: length of the crossing; without one, the shortest (``"below"``) or longest measured length.
        slower: longest measured length before the crossing at which the variant is clearly slower (the lower quartile
            of the ratio is at least one); None if there is no such length or no crossing.
        faster: shortest measured length from which on the variant is clearly faster (the upper quartile is below one);
            None without a crossing.
    """

    where: Literal["at", "below", "beyond", "even"]
    tokens: float
    slower: int | None = None
    faster: int | None = None


def variant_points(run: Run, word: str) -> list[Point]:
    """Return the points of a variant, by ascending length."""
    return sorted((point for point in run.points if point.variant == word), key=lambda point: point.n)


def softmax_word(run: Run) -> str | None:
    """Return the word of softmax in this run, with any settings; None if softmax was not measured."""
    return next((point.variant for point in run.points if point.variant.partition("~")[0] == REFERENCE), None)


def ratios(run: Run, word: str) -> list[Ratio]:
    """Return the ratios of a variant's time to softmax's at each length where both were measured."""
    softmax = {point.n: point for point in run.points if point.variant == softmax_word(run)}
    result = []
    for point in variant_points(run, word):
        if point.n in softmax:
            # The samples of one round are close in time, so a slowdown of the machine affects the variant and softmax
            # equally, and not their ratio.
            round_ratios = [own / reference for own, reference in zip(point.ms, softmax[point.n].ms, strict=False)]
            low, middle, high = np.quantile(round_ratios, (0.25, 0.5, 0.75)).tolist()
            result.append(Ratio(n=point.n, low=low, middle=middle, high=high))
    return result


def crossing(ratios: Sequence[Ratio]) -> Crossing | None:
    """Find the length from which on every ratio is below one, by linear interpolation of logarithms.

    Args:
        ratios: ratios of one variant, by ascending length.

    Returns:
        The crossing; None for empty ``ratios``.
    """
    if not ratios:
        return None
    last = ratios[-1]
    if last.low <= 1 <= last.high or abs(last.middle - 1) < CLEAR_DIFFERENCE:
        return Crossing(where="even", tokens=last.n)
    if last.middle >= 1:
        return Crossing(where="beyond", tokens=last.n)
    slower = [i for i, ratio in enumerate(ratios) if ratio.middle >= 1]
    if not slower:
        return Crossing(where="below", tokens=ratios[0].n)
    a, b = ratios[slower[-1]], ratios[slower[-1] + 1]
    share = math.log(a.middle) / (math.log(a.middle) - math.log(b.middle))
    return Crossing(
        where="at",
        tokens=math.exp(math.log(a.n) + share * (math.log(b.n) - math.log(a.n))),
        slower=max((r.n for r in ratios[: slower[-1] + 1] if r.low >= 1), default=None),
        faster=min(r.n for r in ratios if all(later.high < 1 for later in ratios if later.n >= r.n)),
    )


@dataclass(frozen=True, kw_only=True)
class Overtaking:
    """The point where a variant becomes faster than softmax, with the measured times on both sides.

    Attributes:
        tokens: sequence length from which on the variant is faster.
        ms: softmax's time at that length, interpolated linearly between logarithms.
        before: last measured length up to that point, and the medians of the variant and of softmax in ms.
        after: the same three numbers at the next measured length.
    """

    tokens: float
    ms: float
    before: tuple[int, float, float]
    after: tuple[int, float, float]


def overtaking(run: Run, word: str) -> Overtaking | None:
    """Return where a variant overtakes softmax between two measured lengths; None if it does not."""
    crossover = crossing(ratios(run, word))
    if crossover is None or crossover.where != "at":
        return None
    softmax = {point.n: point.quartiles[1] for point in variant_points(run, softmax_word(run) or "")}
    common = [(p.n, p.quartiles[1], softmax[p.n]) for p in variant_points(run, word) if p.n in softmax]
    before = next(each for each in reversed(common) if each[0] <= crossover.tokens)
    after = next(each for each in common if each[0] > crossover.tokens)
    share = math.log(crossover.tokens / before[0]) / math.log(after[0] / before[0])
    ms = math.exp(math.log(before[2]) + share * math.log(after[2] / before[2]))
    return Overtaking(tokens=crossover.tokens, ms=ms, before=before, after=after)


def growth(sizes: Sequence[int], values: Sequence[float]) -> PowerFit | None:
    """Fit a power law to the values at the last ``FITTED_LENGTHS`` sizes; None for a single size or a value of zero."""
    x, y = sizes[-FITTED_LENGTHS:], values[-FITTED_LENGTHS:]
    return fit_power(x, y) if len(x) > 1 and min(y) > 0 else None
