"""The rule that turns a claim's numbers into a verdict, and the distance of each number from its threshold."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import ge, gt, le, lt
from typing import Literal

Numbers = Mapping[str, float]
"""The values of a claim's quantities, or the values of its bounds, by name."""
Threshold = str | float | Callable[[Numbers, Numbers], float]
"""The name of a bound, a fixed value, or a function ``(numbers, bounds) -> value`` for a measured threshold."""
Comparison = Literal["<=", ">=", "<", ">"]
OPPOSITE: Mapping[Comparison, Comparison] = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}
COMPARISONS = {"<=": le, ">=": ge, "<": lt, ">": gt}


class Verdict(StrEnum):
    """The result of a claim's rule on one input."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold here"
    UNTESTABLE = "not testable on this input"


@dataclass(frozen=True)
class Measured:
    """A threshold that is measured: the value of a quantity, times the claim's bound ``factor`` if that is set."""

    quantity: str
    factor: str = ""

    def __call__(self, numbers: Numbers, bounds: Numbers) -> float:
        """Return the threshold for the measured ``numbers`` and the claim's ``bounds``."""
        return (bounds[self.factor] if self.factor else 1.0) * numbers[self.quantity]


@dataclass(frozen=True)
class Margin:
    """A measured number and the threshold that it is compared with.

    Attributes:
        quantity: the name of the number.
        value: the number.
        threshold: the threshold, in the same unit.
        measured: whether the threshold is itself computed from measured numbers.
        comparison: how the number must compare with the threshold.
        factor: the factor in a measured threshold; the quantity is then a value for equal weights. None for no factor.
    """

    quantity: str
    value: float
    threshold: float
    measured: bool
    comparison: Comparison
    factor: float | None = None

    @property
    def relative(self) -> float:
        """The distance between number and threshold, divided by the larger of their absolute values."""
        return abs(self.value - self.threshold) / (max(abs(self.value), abs(self.threshold)) or 1.0)


@dataclass(frozen=True)
class Condition:
    """A condition of a rule: one number is compared with one threshold.

    Attributes:
        quantity: the name of the number.
        comparison: how the number must compare with the threshold.
        threshold: the threshold.
        around: a value, or a bound's name; if set, the distance from this value is compared with the threshold.
        tolerance: how far beyond the threshold the number may be, because of rounding errors.
    """

    quantity: str
    comparison: Comparison
    threshold: Threshold
    around: str | float | None = None
    tolerance: float = 0.0

    def __iter__(self) -> Iterator["Condition"]:
        """Yield this condition alone, because a loop over a ``Group`` yields all its conditions."""
        yield self

    def is_met(self, met: Callable[["Condition"], bool]) -> bool:
        """Return ``met(self)``, so that conditions and groups have the same method."""
        return met(self)

    def holds(self, numbers: Numbers, bounds: Numbers) -> bool:
        """Return whether the number, or its distance from ``around``, meets the threshold."""
        value, limit = numbers[self.quantity], _value(self.threshold, numbers, bounds)
        if self.around is not None:
            value = abs(value - _value(self.around, numbers, bounds))
        return COMPARISONS[self.comparison](value, limit + self.tolerance * (1 if "<" in self.comparison else -1))

    def margin(self, numbers: Numbers, bounds: Numbers) -> Margin:
        """Return the margin between the number and its threshold.

        With ``around``, there is a threshold on each side of that value, and the one on the number's side is used.
        A number within the tolerance of its threshold counts as equal to the threshold.
        """
        value, threshold = numbers[self.quantity], _value(self.threshold, numbers, bounds)
        comparison = self.comparison
        if self.around is not None:
            centre = _value(self.around, numbers, bounds)
            threshold = centre + math.copysign(threshold, value - centre)
            if value < centre:
                comparison = OPPOSITE[comparison]
        if abs(value - threshold) <= self.tolerance:
            value = threshold
        factor = (
            bounds[self.threshold.factor] if isinstance(self.threshold, Measured) and self.threshold.factor else None
        )
        return Margin(self.quantity, value, threshold, callable(self.threshold), comparison, factor=factor)


@dataclass(frozen=True)
class Group:
    """A group of conditions and of other groups; either all parts or at least one part must be met."""

    parts: tuple["Condition | Group", ...]
    combine: Callable[[Iterable[bool]], bool]

    def __iter__(self) -> Iterator[Condition]:
        """Yield every condition in the group, including those in nested groups."""
        for part in self.parts:
            yield from part

    def is_met(self, met: Callable[[Condition], bool]) -> bool:
        """Return whether the group is met, where ``met`` decides whether one condition is met."""
        return self.combine(part.is_met(met) for part in self.parts)


def all_of(*parts: Condition | Group) -> Group:
    """Return a group of which every part must be met."""
    return Group(parts, all)


def any_of(*parts: Condition | Group) -> Group:
    """Return a group of which at least one part must be met."""
    return Group(parts, any)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: the conditions under which a claim holds, and those under which it holds partly.

    Attributes:
        requires: conditions without which the claim does not hold; None for no such conditions.
        holds: the conditions under which the claim holds.
        partly: the conditions under which the claim holds partly if it does not hold. With None, the conditions of
            ``requires`` are enough to hold partly; without ``requires``, the claim then never holds partly.
    """

    requires: Condition | Group | None = None
    holds: Condition | Group
    partly: Condition | Group | None = None

    def __iter__(self) -> Iterator[Condition]:
        """Yield all conditions of the rule."""
        for group in (self.requires, self.holds, self.partly):
            yield from group or ()

    @property
    def needed(self) -> tuple[Condition, ...]:
        """The conditions of ``requires`` and ``holds``, each once."""
        return tuple(dict.fromkeys([*(self.requires or ()), *self.holds]))

    def __call__(self, numbers: Numbers, bounds: Numbers) -> Verdict:
        """Return the verdict for the measured ``numbers`` and the claim's ``bounds``."""
        return self._verdict(lambda condition: condition.holds(numbers, bounds))

    def _verdict(self, met: Callable[[Condition], bool]) -> Verdict:
        if self.requires and not self.requires.is_met(met):
            return Verdict.FAILS
        if self.holds.is_met(met):
            return Verdict.HOLDS
        enough = self.partly.is_met(met) if self.partly else self.requires is not None
        return Verdict.PARTLY if enough else Verdict.FAILS


def parts(*conditions: Condition | Group) -> Rule:
    """Return the rule of a claim with several parts: it holds if all are met, and partly if at least one is."""
    return Rule(holds=all_of(*conditions), partly=any_of(*conditions))


def _value(threshold: Threshold, numbers: Numbers, bounds: Numbers) -> float:
    if callable(threshold):
        return threshold(numbers, bounds)
    return bounds[threshold] if isinstance(threshold, str) else threshold
