"""The answer to the question of a lesson's step: a number, the variant with the smallest or largest number, or a curve.

The page of the step computes the number or the curve.
"""

from dataclasses import dataclass

import attention_core as ac
from app.lessons.lesson import Step
from app.lessons.screen import Screen
from app.measures import CurveMeasure, Measure
from app.page import discover
from app.state.session import REFERENCE

RANKS = ("least", "most")


@dataclass(frozen=True)
class Answer:
    """The quantity that a step's ``answer`` refers to.

    Attributes:
        measure: a measure of the step's page.
        key: the key of the variant that the question is about; empty if the number belongs to no variant, or the
            question asks which variant has the smallest or largest number.
        rank: ``least`` or ``most`` if the question asks for a variant, else empty.
    """

    measure: Measure
    key: str = ""
    rank: str = ""

    def number(self, screen: Screen, key: str = "") -> float | None:
        """Return the number on a screen, for variant ``key`` or ``self.key``; errors are as in ``Measure.number``."""
        variant_key = key or self.key
        return self.measure.number(screen, screen.variant(variant_key) if variant_key else None)

    def candidates(self, screen: Screen) -> list[str]:
        """Return the keys of the variants that can be the answer: all compared variants except the reference."""
        return [each.key for each in screen.shared.variants if each.key != REFERENCE]

    def winner(self, screen: Screen) -> str | None:
        """Return the key of the variant with the smallest or the largest number, or None if no variant has a number."""
        numbers = {key: self.number(screen, key) for key in self.candidates(screen)}
        measured = {key: number for key, number in numbers.items() if number is not None}
        best = min if self.rank == "least" else max
        return best(measured, key=lambda key: measured[key], default=None)


def find(step: Step) -> Answer | None:
    """Return the quantity that a step's ``answer`` refers to, or None if its page does not show it."""
    words = step.answer.split()
    measures = discover()[step.page].measures
    if len(words) == 2 and words[0] in RANKS:
        measure = measures.get(words[1])
        return Answer(measure, rank=words[0]) if measure and measure.per_variant else None
    if len(words) not in (1, 2) or (measure := measures.get(words[0])) is None:
        return None
    key = words[1] if len(words) == 2 else ""
    if measure.per_variant != bool(key) or (key and not _is_variant(key)):
        return None
    return Answer(measure, key)


def find_curve(step: Step) -> tuple[CurveMeasure, str] | None:
    """Return the curve that a step asks to draw and its variant's key, or None if its page shows no such curve."""
    name, _space, key = step.draw.partition(" ")
    curve = discover()[step.page].curves.get(name)
    return (curve, key) if curve is not None and _is_variant(key) else None


def find_variant(step: Step) -> str:
    """Return the key of the variant whose number or curve a step asks for; empty if it asks for no single variant."""
    target, curve = find(step), find_curve(step)
    return curve[1] if curve else target.key if target else ""


def _is_variant(key: str) -> bool:
    return any(each.key == key for each in ac.all_variants())
