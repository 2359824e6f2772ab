"""Record the Model page's results for its built-in texts at default settings: ``python -m pages.model.record``.

This takes a quarter of an hour. Run it again after a change of a model, text, variant or task that affects the
numbers. Each file has the date and the processor. With ``--continue``, results that a file already contains are not
computed again, for example after an interrupted run.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import attention_core
from app.state import presets
from attention_core.benchmarking.device import Stamp, stamp
from attention_core.experiments import continuation, swap
from attention_core.experiments.continuation import ContinuationTask
from attention_core.experiments.swap import SwapTask, records
from attention_core.runtime.devices import use_threads
from pages.model.continuation import SEED
from pages.model.options import DEFAULT_WORDS, OWN_TEXT, TEXTS, depth
from pages.model.variant_buttons import BUTTON_WORDS

TaskT = TypeVar("TaskT")
RowT = TypeVar("RowT")
WRITE_INTERVAL = 40
"""Number of computed tasks between two writes of a file."""


def tasks() -> Iterator[SwapTask]:
    """Yield the tasks to record, those of a first visit first."""
    all_layers, texts = tuple(range(depth())), [presets.texts()[name] for name in TEXTS if name != OWN_TEXT]
    for words in (DEFAULT_WORDS, BUTTON_WORDS):
        for text in texts:
            yield from swap.tasks(text, words, all_layers, seeds=swap.SEEDS)
    for text in texts:
        yield from swap.budget_tasks(text, DEFAULT_WORDS, all_layers, swap.PERIOD * 2, output_errors=True)
        for edge in (*swap.EDGES, "single"):
            yield from swap.layer_tasks(text, [*DEFAULT_WORDS, *swap.BASELINES], edge, depth())


def unique_tasks() -> Sequence[SwapTask]:
    """Return the tasks to record without duplicates.

    Of tasks that differ only in ``detail``, the one with detail is returned.
    """
    by_name: dict[tuple[str, str | None], SwapTask] = {}
    for task in tasks():
        name = type(task).__name__, records.key(task)
        if name not in by_name or getattr(task, "detail", False):
            by_name[name] = task
    return list(by_name.values())


def continuations() -> list[ContinuationTask]:
    """Return the tasks to record that generate continuations of the texts."""
    texts, all_layers = [presets.texts()[name] for name in TEXTS if name != OWN_TEXT], tuple(range(depth()))
    return [task for text in texts for task in continuation.tasks(text, DEFAULT_WORDS, all_layers, seed=SEED)]


def main() -> None:
    """Compute the missing results and write the files."""
    use_threads()
    _write(unique_tasks(), swap.recorded_row, swap.compute, records.to_json, records.FILE)
    _write(continuations(), continuation.recorded_row, continuation.compute, continuation.to_json, continuation.FILE)


def _write(
    tasks: Sequence[TaskT],
    load_row: Callable[[TaskT], RowT | None],
    compute: Callable[[TaskT], RowT],
    to_json: Callable[[Stamp, list[tuple[TaskT, RowT]]], bytes],
    path: str,
) -> None:
    """Compute the missing results of one experiment and write its file; the path is relative to ``attention_core``."""
    file, start = Path(attention_core.__file__).parent / path, time.monotonic()
    file.parent.mkdir(exist_ok=True)
    rows = [(task, row) for task in tasks if (row := load_row(task))] if "--continue" in sys.argv else []
    missing = [task for task in tasks if task not in {recorded for recorded, _row in rows}]
    for number, task in enumerate(missing, start=1):
        rows.append((task, compute(task)))
        if number % WRITE_INTERVAL == 0 or number == len(missing):
            file.write_bytes(to_json(stamp("cpu"), rows))
            print(f"{number}/{len(missing)} after {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
