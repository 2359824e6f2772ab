"""Training of tiny models with different attention variants, and tests of the trained models on other sequences.

A run trains several models a few steps at a time, so that all curves grow together. A trained model is then
tested on longer sequences and on sequences with more items to remember (key-value pairs or symbols).

The training and the tests of a model are divided into parts (``TrainTask``, ``TestTask``). Each part starts from the
checkpoint that the previous part has saved. A run can stop after any part; when continued, it gives the same results
as without a stop. What a model learns, such as recall, is also called a task.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import torch

from attention_core import registry
from attention_core.errors import Name, check_range
from attention_core.experiments.task import Load, load
from attention_core.formatting import N_
from attention_core.learning.learning_task import Batch, LearningTask
from attention_core.learning.model import ModelSpec, TinyModel
from attention_core.learning.rates import rate
from attention_core.learning.tasks import task as task_of
from attention_core.learning.train import Checkpoint, Row, TrainSpec, evaluation_batch, measure, model_of, train_until
from attention_core.limits import current
from attention_core.runtime.progress import check

MEASURE_INTERVAL = 25
"""Training steps of a ``TrainTask``, after which the model is measured."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run: the models to train and what to test them on afterwards.

    Attributes:
        specs: how each model is trained.
        lengths: lengths of tests with the same number of items as in training.
        items: numbers of items (pairs or symbols to remember) of further tests. Their length is that of training,
            doubled until it is long enough.
        every: training steps between two measurements.
    """

    specs: tuple[TrainSpec, ...]
    lengths: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    every: int = MEASURE_INTERVAL

    @property
    def tests(self) -> tuple[tuple[int, int], ...]:
        """The tests of each trained model, as pairs ``(length in tokens, number of items)``."""
        spec = self.specs[0]
        task = task_of(spec.model.task)
        longer = [(length, spec.items) for length in self.lengths]
        with_more_items = [(length_with_items(task, spec.length, items), items) for items in self.items]
        return tuple(dict.fromkeys([*longer, *with_more_items]))


@dataclass(frozen=True, kw_only=True)
class TrainTask:
    """A part of a run that trains a model for some steps and measures it.

    Attributes:
        start: the checkpoint from which training continues; None to start from untrained weights.
        until: the step to train up to; 0 to measure the untrained model.
        every: steps between measurements; the first is before the first step. 0 to measure only at the end.
    """

    spec: TrainSpec
    start: Checkpoint | None
    until: int
    every: int = 0


@dataclass(frozen=True, kw_only=True)
class TestTask:
    """A part of a run that measures a trained model on other sequences.

    Attributes:
        end: the trained model's last checkpoint.
        tests: pairs of length and items.
    """

    spec: TrainSpec
    end: Checkpoint
    tests: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRow:
    """A measurement during training, or of the trained model on other sequences.

    Attributes:
        row: the measured numbers.
        is_test: whether the trained model was tested on other sequences.
        matrices: the attention matrices of every layer on ``example_batch``, averaged over heads, ``[layers, n, n]``
            float16; None for a test, and for recorded runs of all seeds but the first.
        checkpoint: the state of training; None for a test and for a recorded row.
    """

    spec: TrainSpec
    row: Row
    is_test: bool = False
    matrices: np.ndarray | None = field(default=None, repr=False)
    checkpoint: Checkpoint | None = field(default=None, repr=False)


def plan(
    words: Sequence[str],
    *,
    task: str = "recall",
    length: int | None = None,
    items: int | None = None,
    steps: int = 400,
    rates: Sequence[float] | None = None,
    seeds: Sequence[int] = (0,),
    lengths: Sequence[int] = (),
    more_items: Sequence[int] = (),
    every: int = MEASURE_INTERVAL,
    **model: Any,  # noqa: ANN401 - the fields of ModelSpec
) -> Plan:
    """Return the plan of a run: every variant with every seed, all other things equal.

    Args:
        words: the variants and their settings.
        task: key of the learning task.
        length: tokens of a training sequence; the learning task's default for None.
        items: pairs or symbols to remember; the learning task's default for None.
        steps: optimiser steps.
        rates: learning rate of each variant; None for the recorded rates.
        seeds: seeds; each gives one model per variant.
        lengths: lengths to test on afterwards.
        more_items: numbers of items to test on afterwards.
        every: training steps between two measurements.
        **model: other fields of ``ModelSpec``.

    Raises:
        LabError: if the learning task, a variant or a sequence that the plan needs does not exist.
    """
    task_ = task_of(task)
    length = task_.length if length is None else length
    items = task_.items if items is None else items
    task_.check(length, items)
    _check(steps=steps, every=every, models=len(words) * len(seeds))
    for value in lengths:
        task_.check(value, items)
    for value in more_items:
        task_.check(length_with_items(task_, length, value), value)
    settings: dict[str, Any] = {"positions": task_.positions} | model
    settings["tokens"] = max((length, *lengths))
    # A word such as ``local~window~4`` gives a variant and its settings. ``Attention.word`` leaves out settings at
    # their defaults, so equal variants get equal words.
    models = [ModelSpec(task=task, word=registry.from_word(word).word, **settings) for word in words]
    return Plan(
        specs=tuple(
            TrainSpec(model=model, length=length, items=items, steps=steps, rate=rate_, seed=seed)
            for seed in seeds
            for model, rate_ in zip(models, rates or map(rate, models), strict=True)
        ),
        lengths=tuple(lengths),
        items=tuple(more_items),
        every=every,
    )


def _check(*, steps: int, every: int, models: int) -> None:
    """Check a plan's training steps, measurement interval and number of models against the profile's limits.

    Raises:
        InputError: if a number is out of bounds.
    """
    limits = current()
    check_range(N_("steps"), steps, 1, limits.learn_steps)
    check_range(Name("every"), every, 1, limits.learn_steps)
    check_range(N_("variants × seeds"), models, 1, limits.learn_models)


def length_with_items(task: LearningTask, length: int, items: int) -> int:
    """Return ``length``, doubled until the task can have this many items, but at most the task's longest length."""
    while task.most_items(length) < items and length < task.longest:
        length *= 2
    return min(length, task.longest)


def next_tasks(plan: Plan, rows: Sequence[LearnRow]) -> list[TrainTask | TestTask]:
    """Return the next parts of a run after these rows, one per unfinished model.

    Parts with the fewest steps come first, and tests come last.
    """
    latest: dict[TrainSpec, Checkpoint] = {}
    tested = set()
    for row in rows:
        if row.is_test:
            tested.add(row.spec)
        elif row.checkpoint is not None:
            latest[row.spec] = row.checkpoint
    train: list[tuple[int, TrainTask]] = []
    test: list[TrainTask | TestTask] = []
    for spec in plan.specs:
        checkpoint = latest.get(spec)
        if checkpoint is None:
            train.append((-1, TrainTask(spec=spec, start=None, until=0)))
        elif checkpoint.step < spec.steps:
            until = min(checkpoint.step + plan.every, spec.steps)
            train.append((checkpoint.step, TrainTask(spec=spec, start=checkpoint, until=until)))
        elif plan.tests and spec not in tested:
            test.append(TestTask(spec=spec, end=checkpoint, tests=plan.tests))
    return [task for _step, task in sorted(train, key=itemgetter(0))] + test


def total(plan: Plan) -> int:
    """Return the number of parts of a run."""
    return sum(1 + -(-spec.steps // plan.every) + bool(plan.tests) for spec in plan.specs)


def run(task: TrainTask | TestTask, *, load: Load = load) -> tuple[LearnRow, ...]:
    """Train and measure, or test a trained model.

    Raises:
        LabError: if the variant cannot be trained on the learning task.
    """
    check()
    if isinstance(task, TrainTask):
        spec, state, rows = task.spec, task.start, []
        for until in [*(range(0, task.until, task.every) if task.every else ()), task.until]:
            model, state = train_until(spec, until, state)
            last = state if until == task.until else None
            row = LearnRow(spec=spec, row=measure(spec, model, state), matrices=matrices(spec, model), checkpoint=last)
            rows.append(row)
        return tuple(rows)
    model = model_of(task.spec, task.end.weights)
    return tuple(
        LearnRow(spec=task.spec, row=measure(task.spec, model, task.end, length=length, items=items), is_test=True)
        for length, items in task.tests
    )


def example_batch(spec: TrainSpec) -> Batch:
    """Return one evaluation sequence, ``[1, n]``, the same for all variants of a plan with the same seed."""
    return evaluation_batch(spec, spec.length, spec.items, sequences=1)


def example_labels(spec: TrainSpec) -> list[str]:
    """Return the names of the example's tokens; their numbers for a task of vectors."""
    return task_of(spec.model.task).names(example_batch(spec).inputs[0])


def matrices(spec: TrainSpec, model: TinyModel) -> np.ndarray:
    """Return the attention matrices of all layers on the example, averaged over heads, ``[layers, n, n]`` float16."""
    return torch.stack([layer[0].mean(0) for layer in model.matrices(example_batch(spec).inputs)]).half().numpy()
