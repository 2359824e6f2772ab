"""What answers a step's question: a number, or the variant that has the least or the most of it."""

from dataclasses import dataclass

import attention_core as ac
from app.lessons.lesson import Step
from app.lessons.screen import Screen
from app.measures import Measure
from app.page import discover
from app.state.session import REFERENCE
from app.words.i18n import _

RANKS = ("least", "most")


@dataclass(frozen=True)
class Answer:
    """What a step's ``answer`` names.

    Attributes:
        measure: one of its page's.
        key: the variant whose number it is; empty where it is nobody's or every variant's.
        rank: ``least`` or ``most`` where it asks for the variant, else empty.
    """

    measure: Measure
    key: str = ""
    rank: str = ""

    def number(self, screen: Screen, key: str = "") -> float | None:
        """The number on a screen; errors as of ``Measure.find``."""
        named = key or self.key
        return self.measure.find(screen, screen.variant(named) if named else None)

    def rivals(self, screen: Screen) -> list[str]:
        """Of whom it asks who has the least or the most: the variants compared but the reference."""
        return [each.key for each in screen.visit.variants if each.key != REFERENCE]

    def first(self, screen: Screen) -> str | None:
        """Who has the least or the most; None where there is nobody."""
        numbers = {key: self.number(screen, key) for key in self.rivals(screen)}
        found = {key: number for key, number in numbers.items() if number is not None}
        best = min if self.rank == "least" else max
        return best(found, key=lambda key: found[key], default=None)

    def asked(self, name: str = "") -> str:
        """What is measured, in words."""
        return _(self.measure.title, name=name) if self.measure.of_variant else _(self.measure.title)


def find(step: Step) -> Answer | None:
    """What a step's ``answer`` names; None where its page shows no such thing."""
    words = step.answer.split()
    measures = discover()[step.page].measures
    if len(words) == 2 and words[0] in RANKS:
        measure = measures.get(words[1])
        return Answer(measure, rank=words[0]) if measure and measure.of_variant else None
    if len(words) not in (1, 2) or (measure := measures.get(words[0])) is None:
        return None
    key = words[1] if len(words) == 2 else ""
    if measure.of_variant != bool(key) or (key and key not in [each.key for each in ac.all_variants()]):
        return None
    return Answer(measure, key)
