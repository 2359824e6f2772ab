"""A number that a page shows and a lesson may ask for, and how a visitor's guess stands to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.text import _
from attention_core.writing import formatted

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
        high: where it ends.
        step: of a guess.
        digits: after the decimal point.
        near: how far a guess may be off and still be called close.
        none: what is said where there is no such number, to be translated.
    """

    title: str
    find: Callable[["Screen", "ac.Attention | None"], float | None]
    of_variant: bool = True
    unit: str = ""
    low: float = 0.0
    high: float
    step: float
    digits: int
    near: float
    none: str = ""

    def written(self, value: float) -> str:
        """A number with its unit."""
        told = formatted(value, f",.{self.digits}f")
        return told + self.unit if self.unit in ("", "%") else f"{told}\N{NO-BREAK SPACE}{_(self.unit)}"


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
        return _("Here it is {truth}.", **shown)
    told = {**shown, "guess": measure.written(guess), "off": measure.written(abs(guess - truth))}
    if abs(guess - truth) <= measure.near:
        return _("You said {guess}; here it is {truth}: close.", **told)
    if guess > truth:
        return _("You said {guess}; here it is {truth}: {off} less.", **told)
    return _("You said {guess}; here it is {truth}: {off} more.", **told)
