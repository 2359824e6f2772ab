"""The measurements (rows) of a training run, grouped by attention variant for the Learn page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import median

import numpy as np

import attention_core as ac
from app.ui import palette
from app.words.i18n import _
from app.words.labels import in_words, label
from attention_core.experiments import generation
from attention_core.experiments.learning import LearnRow
from attention_core.learning.model import ModelSpec
from attention_core.learning.removed_parts import models_without_parts
from attention_core.learning.tasks import task as task_of

THRESHOLD = 0.95
"""Accuracy from which a variant counts as having learned the task."""
FLOAT32_BYTES = 4
"""Bytes of a float32 number."""
MAX_CLOSE = 0.05
"""Two accuracies that differ by at most this much count as equal."""


def has_threshold(task: str) -> bool:
    """Return whether an accuracy of ``THRESHOLD`` counts as having learned a task, given by its key.

    It does not on tasks with held-out examples, because it is not known which share of these a model can predict.
    """
    return not task_of(task).held_out


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The measurements of a variant's models, which differ in their seeds.

    Attributes:
        word: the variant and its settings as in links, such as ``local~window~16``.
        name: name on screen.
        title: name without settings, at the end of a line in charts.
        colour: index of the colour in charts.
        rows: measurements during training, for all seeds.
        tests: measurements of the trained models on other sequences, for all seeds.
    """

    word: str
    name: str
    title: str
    colour: int
    rows: tuple[LearnRow, ...]
    tests: tuple[LearnRow, ...]

    @property
    def name_in_sentence(self) -> str:
        """The name within a sentence, with the settings in words, and "softmax" in lower case."""
        return _("softmax") if self.name == _("Softmax") else in_words(self.name)

    @property
    def step(self) -> int:
        """The last step that the models with all seeds have reached."""
        return min(max(each.row.step for each in own) for own in self._by_seed)

    @property
    def accuracy(self) -> float:
        """The median accuracy over the seeds at ``step``."""
        return median(each.row.accuracy for each in self.rows if each.row.step == self.step)

    def is_above(self, other: "Outcome") -> bool:
        """Return whether every run ends with a higher accuracy than every run of the other outcome."""
        lowest, highest = (
            choose(own[-1].row.accuracy for own in each._by_seed) for choose, each in ((min, self), (max, other))
        )
        return lowest > highest

    @property
    def is_rising(self) -> bool:
        """True if the median accuracy has risen by more than ``MAX_CLOSE`` in the last quarter of the steps."""
        earlier = max(each.row.step for each in self.rows if each.row.step <= 0.75 * self.step)
        before = median(each.row.accuracy for each in self.rows if each.row.step == earlier)
        return self.accuracy - before > MAX_CLOSE

    @property
    def learned_at(self) -> tuple[int, float] | None:
        """Steps and CPU seconds until more than half of the seeds had learned the task; None if they have not.

        A seed whose accuracy is below ``THRESHOLD`` at its last step has not learned the task. The result is None for
        tasks on which no accuracy counts as learned.
        """
        if not has_threshold(self.rows[0].spec.model.task):
            return None
        first = self.learned_at_by_seed
        steps = sorted(each for each in first if each is not None)
        return steps[len(first) // 2] if 2 * len(steps) > len(first) else None

    @property
    def learned_at_by_seed(self) -> list[tuple[int, float] | None]:
        """For each seed in order, steps and CPU seconds until it had learned the task; None if it has not."""
        return [
            next((each.row.step, each.row.seconds) for each in own if each.row.accuracy >= THRESHOLD)
            if own[-1].row.accuracy >= THRESHOLD
            else None
            for own in self._by_seed
        ]

    @property
    def diverged(self) -> bool:
        """True if a loss of any seed is not finite."""
        return not np.isfinite([each.row.loss for each in self.rows]).all()

    @property
    def largest_rise(self) -> tuple[int, int] | None:
        """The two measured steps of the first seed between which the accuracy rises most; None without a rise."""
        seed_rows = self._by_seed[0]
        index = steepest_rise([each.row.accuracy for each in seed_rows])
        return None if index is None else (seed_rows[index - 1].row.step, seed_rows[index].row.step)

    @property
    def is_trained(self) -> bool:
        """True if training is complete for all seeds."""
        return self.step == self.rows[0].spec.steps

    def test_points(self, by: str) -> list[tuple[int, float]]:
        """Return one pair per test: the length or number of items, and the accuracy.

        Args:
            by: ``"length"``: tests with as many items as in training; ``"items"``: tests with other numbers of items.
        """
        spec = self.rows[0].spec
        if by == "length":
            return [(each.row.length, each.row.accuracy) for each in self.tests if each.row.items == spec.items]
        matching = [each for each in self.tests if each.row.items != spec.items or each.row.length == spec.length]
        return [(each.row.items, each.row.accuracy) for each in matching]

    def largest_test(self, by: str) -> tuple[int, float] | None:
        """Return the largest tested length or number of items and the median accuracy there; None without tests."""
        if not (points := self.test_points(by)):
            return None
        largest = max(x for x, _share in points)
        return largest, median(share for x, share in points if x == largest)

    @property
    def tested_seeds(self) -> set[int]:
        """The seeds of the tested models."""
        return {each.row.seed for each in self.tests}

    @property
    def _by_seed(self) -> list[list[LearnRow]]:
        seeds = sorted({each.row.seed for each in self.rows})
        return [sorted((r for r in self.rows if r.row.seed == s), key=lambda r: r.row.step) for s in seeds]


@dataclass(frozen=True, kw_only=True)
class PartOutcome:
    """The measurements of a variant's complete models, and of its models with one part removed.

    Attributes:
        full: the measurements of the complete models.
        parts: names of the parts that can be removed, such as "gate".
        ablations: the measurements without a part, by the part's name.
    """

    full: Outcome
    parts: tuple[str, ...]
    ablations: Mapping[str, Outcome]

    @property
    def ablated_accuracy(self) -> dict[str, float]:
        """The median accuracy without each part at the last step that all seeds have reached."""
        return {part: outcome.accuracy for part, outcome in self.ablations.items()}


def steepest_rise(y: Sequence[float]) -> int | None:
    """Return the index of the point at the end of a line's largest rise; None if it never rises."""
    rises = [(after - before, i) for i, (before, after) in enumerate(pairwise(y), start=1)]
    rise, index = max(rises, default=(0.0, 0), key=lambda each: each[0])
    return index if rise > 0 else None


def outcomes(rows: Sequence[LearnRow]) -> list[Outcome]:
    """Return one outcome for each variant in the order of its first row."""
    words = list(dict.fromkeys(each.row.variant for each in rows if not each.is_test))
    results = []
    for word, colour in zip(words, palette.indices(words), strict=True):
        attention, variant_rows = ac.from_word(word), [each for each in rows if each.row.variant == word]
        results.append(
            Outcome(
                word=word,
                name=label(attention, attention.params.changed()),
                title=_(attention.title),
                colour=colour,
                rows=tuple(each for each in variant_rows if not each.is_test),
                tests=tuple(each for each in variant_rows if each.is_test),
            )
        )
    return results


@cache
def numbers_stored(model: ModelSpec) -> tuple[int, int]:
    """Return how many numbers a layer stores for later tokens: a constant number, and the number per earlier token."""
    size, attention = model.width // model.heads, ac.from_word(model.word)
    fixed, grown = generation.memory_bytes(attention, model.heads, size, size)
    return fixed // FLOAT32_BYTES, grown // FLOAT32_BYTES


def part_outcomes(rows: Sequence[LearnRow], models: Sequence[ModelSpec]) -> list[PartOutcome]:
    """Return the measurements of each model, complete and with one part removed; models without rows are left out."""
    by_model: dict[ModelSpec, list[LearnRow]] = {}
    for each in rows:
        by_model.setdefault(each.spec.model, []).append(each)
    results = []
    for model in models:
        if model not in by_model:
            continue
        [full] = outcomes(by_model[model])
        parts = models_without_parts(model)
        ablations = {
            part: outcome
            for part, ablated in parts.items()
            if ablated in by_model
            for outcome in outcomes(by_model[ablated])
        }
        results.append(PartOutcome(full=full, parts=tuple(parts), ablations=ablations))
    return results
