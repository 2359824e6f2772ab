"""Classes for the numbers and curves that a lesson can ask about, and the sentence that judges a visitor's guess."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

from app.words.i18n import _
from attention_core.formatting import formatted

if TYPE_CHECKING:
    import attention_core as ac
    from app.lessons.screen import Screen


@dataclass(frozen=True)
class Quantity:
    """A quantity with a unit that a lesson can ask about.

    Attributes:
        title: name of the quantity, to be translated; ``{name}`` is replaced by the variant's name.
        unit: unit written after a number, to be translated.
        step: step between two guesses.
        digits: digits after the decimal point.
        tolerance: largest error of a guess that still counts as close.
        is_share: function of a screen that returns whether the numbers are fractions, written as percentages there.
    """

    title: str
    _: KW_ONLY
    unit: str = ""
    step: float = 1
    digits: int = 0
    tolerance: float
    is_share: "Callable[[Screen], bool]" = lambda screen: False

    def format(self, value: float, screen: "Screen | None" = None) -> str:
        """Return a number with its unit, in the form for a screen."""
        if screen is not None and self.is_share(screen):
            return f"{formatted(100 * value, ',.0f')}%"
        text = formatted(value, f",.{self.digits}f")
        return text + self.unit if self.unit in ("", "%") else f"{text}\N{NO-BREAK SPACE}{_(self.unit)}"


@dataclass(frozen=True)
class Measure(Quantity):
    """A number that a page shows, computed by the same functions as the page uses.

    Attributes:
        find: function that returns the number in the unit shown. It returns None where the number does not exist and
            raises a ``LabError`` where it cannot be computed.
        low: smallest possible guess.
        high: largest possible guess; a function of the screen where the input or its options limit the number.
        in_table: whether the page shows the number only in a table; a lesson then scrolls to that table.
        missing_message: sentence shown if the number does not exist, to be translated.
    """

    per_variant: ClassVar[bool]
    """True if the number belongs to one variant."""

    find: Callable[..., float | None]
    _: KW_ONLY
    low: float = 0.0
    high: "float | Callable[[Screen], float]" = 100
    in_table: bool = False
    missing_message: str = ""

    def number(self, screen: "Screen", attention: "ac.Attention | None") -> float | None:
        """Return the number on a screen, of the variant if ``per_variant``; None and errors as in ``find``."""
        return self.find(screen, attention) if self.per_variant else self.find(screen)

    def max_guess(self, screen: "Screen") -> float:
        """Return the largest guess on a screen: ``low`` plus as many steps as fit below ``high``, at least one.

        Raises the errors of ``Screen.chosen``.
        """
        high = self.high(screen) if callable(self.high) else self.high
        return self.low + max(1, math.floor((high - self.low) / self.step + 1e-9)) * self.step

    def difference(self, value: float, screen: "Screen | None" = None) -> str:
        """Return a difference of two numbers with its unit; percentages differ by percentage points."""
        text = self.format(value, screen)
        if not text.endswith("%"):
            return text
        points = text.removesuffix("%")
        return _("{points} percentage points", points=points) if points != "1" else _("1 percentage point")


@dataclass(frozen=True)
class PageMeasure(Measure):
    """A number of a page that belongs to no single variant."""

    per_variant = False
    find: "Callable[[Screen], float | None]"


@dataclass(frozen=True)
class VariantMeasure(Measure):
    """A number of one variant."""

    per_variant = True
    find: "Callable[[Screen, ac.Attention], float | None]"


Measures = Mapping[str, Measure]
"""The measures of a page, keyed by the names that lessons use for them."""


@dataclass(frozen=True)
class CurveMeasure(Quantity):
    """A variant's curve on a page, which the visitor of a lesson draws before the page shows it.

    Attributes:
        find: function of a screen and the variant that returns the measured height at each position. It raises a
            ``LabError`` where they cannot be computed.
        positions: function of a screen and the variant that returns the positions on the logarithmic horizontal axis
            at which the page measures, without measuring. It raises a ``LabError`` if the screen has no such curve.
        x_title: title of the horizontal axis, to be translated.
        y_title: title of the vertical axis, to be translated.
        high: function of a screen that returns the upper end of the vertical axis, which starts at 0. It must not
            depend on the measured heights, because the visitor sees it before the answer.
    """

    find: Callable[["Screen", "ac.Attention"], Sequence[float]]
    _: KW_ONLY
    positions: Callable[["Screen", "ac.Attention"], Sequence[float]]
    x_title: str
    y_title: str
    high: Callable[["Screen"], float]


CurveMeasures = Mapping[str, CurveMeasure]
"""The curves of a page that a visitor can draw, keyed by the names that lessons use for them."""


def verdict(measure: Measure, truth: float | None, guess: float | None, screen: "Screen | None" = None) -> str:
    """Return a sentence that gives the answer and compares a guess with it.

    Args:
        measure: the measure that was asked about.
        truth: the answer; None where the number does not exist.
        guess: the visitor's guess; None if the visitor asked for the answer without a guess.
        screen: the screen of the answer.
    """
    if truth is None:
        return _(measure.missing_message)
    values = {"truth": measure.format(truth, screen)}
    if guess is None:
        return _("Answer: {truth}.", **values)
    error = abs(guess - truth)
    values |= {"guess": measure.format(guess, screen), "off": measure.difference(error, screen)}
    if values["guess"] == values["truth"]:
        return _("Correct. It is {truth}.", **values)
    if error <= measure.tolerance:
        return _("Your guess ({guess}) is close. It is {truth}.", **values)
    if guess > truth:
        return _("Not quite. It is {truth}, and your guess ({guess}) is {off} too high.", **values)
    return _("Not quite. It is {truth}, and your guess ({guess}) is {off} too low.", **values)
