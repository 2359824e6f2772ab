"""Recorded training runs, so that visitors see results before they train a model themselves.

One file per task holds the rows of all its runs. It also holds the attention matrices of the first seed, each scaled
so that its largest entry has the magnitude 127, and rounded to whole numbers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cache
from importlib import resources
from typing import cast

import msgspec
import numpy as np

from attention_core.benchmarking.device import Stamp
from attention_core.experiments.learning import LearnRow, Plan
from attention_core.learning.defaults import SEEDS, STEPS
from attention_core.learning.model import ModelSpec, Positions
from attention_core.learning.rates import rate
from attention_core.learning.tasks import task as task_of
from attention_core.learning.train import Row, TrainSpec

LEVELS = 127
"""Integer that represents the largest entry of a stored matrix."""


class StoredRow(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of one ``LearnRow``.

    ``levels`` holds the entries of its attention matrices as whole numbers, and ``scales`` the largest entry of each
    matrix. Both are empty if the matrices are not stored.
    """

    step: int
    length: int
    items: int
    loss: float
    accuracy: float
    seconds: float
    tokens: int
    is_test: bool
    scales: tuple[float, ...]
    levels: bytes


class Document(msgspec.Struct, frozen=True):
    """A recorded file: the machine, and the rows by the ``run_name`` of their training runs."""

    stamp: Stamp
    runs: dict[str, tuple[StoredRow, ...]]


def recorded_rows(plan: Plan) -> list[LearnRow]:
    """Return the rows of all runs of a plan that are recorded."""
    document = recorded_document(plan.specs[0].model.task) if plan.specs else None
    runs = {} if document is None else document.runs
    return [_row(spec, stored) for spec in plan.specs for stored in runs.get(run_name(spec), ())]


def estimated_seconds(spec: TrainSpec) -> float | None:
    """Estimate the CPU seconds of a training run from a recorded run; None without a recorded run of its variant.

    The time per step is that of the recorded run of the same model. Without such a run, it is that of the variant's
    default model, scaled by the number of layers.
    """
    if (document := recorded_document(spec.model.task)) is None:
        return None
    task = task_of(spec.model.task)
    default = ModelSpec(
        task=task.key,
        word=spec.model.word,
        positions=cast("Positions", task.positions),
        tokens=spec.model.tokens or spec.length,
    )
    for model in (spec.model, default):
        run = run_name(replace(spec, model=model, rate=rate(model), steps=STEPS, seed=SEEDS[0]))
        for row in document.runs.get(run, ())[-1:]:
            return row.seconds / row.step * spec.steps * spec.model.layers / model.layers
    return None


def run_name(spec: TrainSpec | ModelSpec) -> str:
    """Return the fields of a training run or model that differ from their defaults, as text.

    Defaults are left out, so that a new field does not change the names of recorded runs.
    """
    changed = {each.name: getattr(spec, each.name) for each in fields(spec) if getattr(spec, each.name) != each.default}
    return ", ".join(
        f"{each}=({run_name(value)})" if isinstance(value, ModelSpec) else f"{each}={value}"
        for each, value in changed.items()
    )


@cache
def recorded_document(task: str) -> Document | None:
    """Return the recorded runs of a task; None without a recorded file."""
    file = resources.files("attention_core.learning").joinpath(f"recorded/{task}.msgpack")
    return decode(file.read_bytes()) if file.is_file() else None


def decode(data: bytes) -> Document:
    """Parse the content of a recorded file."""
    return msgspec.msgpack.decode(data, type=Document)


def is_complete(document: Document, plan: Plan, spec: TrainSpec, with_matrices: Sequence[int]) -> bool:
    """Return whether a document holds a run and all tests of the plan.

    If the run's seed is in ``with_matrices``, the document must also hold the run's attention matrices.
    """
    rows = document.runs.get(run_name(spec), ())
    tested = {(row.length, row.items) for row in rows if row.is_test}
    return bool(rows) and set(plan.tests) <= tested and (spec.seed not in with_matrices or bool(rows[0].levels))


def encode(
    stamp: Stamp, rows: Iterable[LearnRow], *, with_matrices: Sequence[int], earlier: Document | None = None
) -> bytes:
    """Return the content of a recorded file.

    Args:
        stamp: the machine and the date of the runs.
        rows: the rows of all runs.
        with_matrices: the seeds whose matrices are stored.
        earlier: the file's earlier content. Its runs are kept unless ``rows`` contains the same run.
    """
    runs: dict[str, list[StoredRow]] = {}
    for row in rows:
        matrices = row.matrices if row.spec.seed in with_matrices else None
        runs.setdefault(run_name(row.spec), []).append(_numbers(row, matrices))
    kept = {} if earlier is None else earlier.runs
    return msgspec.msgpack.encode(Document(stamp, kept | {run: tuple(stored) for run, stored in runs.items()}))


def _numbers(result: LearnRow, matrices: np.ndarray | None) -> StoredRow:
    row, levels = result.row, b""
    scales: tuple[float, ...] = ()
    if matrices is not None:
        scales = tuple(float(np.abs(matrix).max()) or 1.0 for matrix in matrices.astype(np.float32))
        shares = matrices.astype(np.float32) / np.array(scales)[:, None, None]
        levels = np.rint(shares * LEVELS).astype(np.int8).tobytes()
    return StoredRow(
        row.step, row.length, row.items, row.loss, row.accuracy, row.seconds, row.tokens, result.is_test, scales, levels
    )


def _row(spec: TrainSpec, stored: StoredRow) -> LearnRow:
    matrices = None
    if stored.levels:
        levels = np.frombuffer(stored.levels, np.int8).reshape(spec.model.layers, spec.length, spec.length)
        matrices = levels / np.float32(LEVELS) * np.array(stored.scales, np.float32)[:, None, None]
    return LearnRow(
        spec=spec,
        row=Row(
            variant=spec.model.word,
            task=spec.model.task,
            seed=spec.seed,
            step=stored.step,
            length=stored.length,
            items=stored.items,
            loss=stored.loss,
            accuracy=stored.accuracy,
            seconds=stored.seconds,
            tokens=stored.tokens,
        ),
        is_test=stored.is_test,
        matrices=matrices,
    )
