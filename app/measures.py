"""A number that a page shows and a lesson may ask for, and how a visitor's guess compares with it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.words.i18n import _
from attention_core.formatting import formatted

if TYPE_CHECKING:
    import attention_core as ac
    from app.lessons.screen import Screen


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One of the numbers that a page shows of a screen, found by the functions that the page itself asks.

    Attributes:
        title: what it is, to be translated, with ``{name}`` for the variant where it is one's.
        find: from a screen, and the variant where it is one's, to the number in the unit shown; None where there is
            no such number; raises a ``LabError`` where it cannot be told.
        of_variant: whether it is a variant's.
        unit: behind the number, to be translated.
        low: where a guess can begin.
        high: where it ends; a function of the screen where the input or its options bound the number.
        step: of a guess.
        digits: after the decimal point.
        near: how far a guess may be off and still be called close.
        in_table: whether the page shows it in a table alone, which a lesson then scrolls into view.
        none: what is said where there is no such number, to be translated.
    """

    title: str
    find: Callable[["Screen", "ac.Attention | None"], float | None]
    of_variant: bool = True
    unit: str = ""
    low: float = 0.0
    high: "float | Callable[[Screen], float]"
    step: float
    digits: int
    near: float
    in_table: bool = False
    none: str = ""

    def highest(self, screen: "Screen") -> float:
        """Return where a guess ends on a screen: a multiple of ``step`` above ``low``, and not beyond what is possible.

        Errors as of ``Screen.chosen``.
        """
        high = self.high(screen) if callable(self.high) else self.high
        return self.low + max(1, math.floor((high - self.low) / self.step + 1e-9)) * self.step

    def written(self, value: float) -> str:
        """A number with its unit."""
        told = formatted(value, f",.{self.digits}f")
        return told + self.unit if self.unit in ("", "%") else f"{told}\N{NO-BREAK SPACE}{_(self.unit)}"

    def difference(self, value: float) -> str:
        """Return a difference of two of these numbers with its unit; percentages differ by percentage points."""
        if self.unit != "%":
            return self.written(value)
        points = formatted(value, f",.{self.digits}f")
        return _("{points} percentage points", points=points) if points != "1" else _("1 percentage point")


Measures = Mapping[str, Measure]
"""Those of a page by their words in lessons."""


def verdict(measure: Measure, truth: float | None, guess: float | None) -> str:
    """What a guess comes to beside the number that was found.

    Args:
        measure: what was asked for.
        truth: what was found; None where there is no such number.
        guess: what the visitor said; None who wanted to see it without.
    """
    if truth is None:
        return _(measure.none)
    shown = {"truth": measure.written(truth)}
    if guess is None:
        return _("Answer: {truth}.", **shown)
    told = {**shown, "guess": measure.written(guess), "off": measure.difference(abs(guess - truth))}
    if abs(guess - truth) <= measure.near:
        return _("Your guess: {guess}. Answer: {truth}, close to it.", **told)
    if guess > truth:
        return _("Your guess: {guess}. Answer: {truth} ({off} lower).", **told)
    return _("Your guess: {guess}. Answer: {truth} ({off} higher).", **told)
