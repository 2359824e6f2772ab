"""The chosen variants in a run, ready to draw."""

from dataclasses import dataclass

import attention_core as ac
from app.naming import label
from app.text import _
from app.timing.options import subjects
from attention_core.measure.masked import Masked, subject
from attention_core.measure.records import Point, Run
from attention_core.measure.summary import REFERENCE, Ratio, of_variant, ratios


@dataclass(frozen=True, kw_only=True)
class Series:
    """One variant in one run, ready to draw.

    Attributes:
        run: where it was measured.
        word: the variant and its settings there.
        name: on screen.
        colour: the variant's place among those chosen.
        live: whether the run was made here and now.
        masked: the mask on the full matrix that this is; None for a variant's own algorithm.
        points: its measurements, lengths rising.
        ratios: its time over softmax's.
    """

    run: Run
    word: str
    name: str
    colour: int
    live: bool
    masked: Masked | None = None
    points: list[Point]
    ratios: list[Ratio]

    @property
    def is_reference(self) -> bool:
        """Whether this is softmax itself."""
        return self.word.partition("~")[0] == REFERENCE


def series(run: Run, *, live: bool) -> list[Series]:
    """What is chosen and a run measured; with the settings chosen where it has them, else with its own."""
    found: list[Series] = []
    places: dict[str, int] = {}
    for attention in subjects():
        place = places.setdefault(attention.variant.key, len(places))  # a mask has its variant's colour
        same = [word for word in run.spec.variants if word.partition("~")[0] == attention.key]
        word = attention.word if attention.word in same else next(iter(same), None)
        if word is not None and (points := of_variant(run, word)):
            own = subject(word)
            found.append(
                Series(
                    run=run,
                    word=word,
                    name=name(own),
                    colour=place,
                    live=live,
                    points=points,
                    masked=own if isinstance(own, Masked) else None,
                    ratios=ratios(run, word),
                )
            )
    return found


def name(attention: ac.Attention) -> str:
    """What is timed, on screen."""
    if isinstance(attention, Masked):
        return _("{name}, only masked", name=label(attention))
    return label(attention)
