"""Record the results that the Model page shows first for the built-in texts: ``python -m pages.model.record``.

This takes a quarter of an hour. Repeat it if a changed model, text, variant or task affects the numbers. The files are
stamped. With ``--continue``, rows that a file already has are kept, for example after an interrupted run.
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
from pages.model.options import FIRST, OWN, TEXTS, depth
from pages.model.places import OFFERED

TaskT = TypeVar("TaskT")
RowT = TypeVar("RowT")
OFTEN = 40
"""Number of tasks after which a file is written."""


def tasks() -> Iterator[SwapTask]:
    """Yield the tasks to record, those of a first visit first."""
    everywhere, texts = tuple(range(depth())), [presets.texts()[name] for name in TEXTS if name != OWN]
    for words in (FIRST, OFFERED):
        for text in texts:
            yield from swap.tasks(text, words, everywhere, seeds=swap.SEEDS)
    for text in texts:
        yield from swap.budget_tasks(text, FIRST, everywhere, swap.PERIOD * 2, stray=True)
        for edge in (*swap.EDGES, "single"):
            yield from swap.layer_tasks(text, [*FIRST, *swap.FLOORS], edge, depth())


def wanted() -> Sequence[SwapTask]:
    """Return the tasks to record without duplicates, with detail if any duplicate asks for detail."""
    found: dict[tuple[str, str | None], SwapTask] = {}
    for task in tasks():
        name = type(task).__name__, records.key(task)
        if name not in found or getattr(task, "detail", False):
            found[name] = task
    return list(found.values())


def continuations() -> list[ContinuationTask]:
    """Return the continuations to record."""
    texts, everywhere = [presets.texts()[name] for name in TEXTS if name != OWN], tuple(range(depth()))
    return [task for text in texts for task in continuation.tasks(text, FIRST, everywhere, seed=SEED)]


def main() -> None:
    """Compute the missing results and write the files."""
    use_threads()
    _write(wanted(), swap.known, swap.compute, records.to_json, records.RECORDED)
    _write(continuations(), continuation.known, continuation.compute, continuation.to_json, continuation.RECORDED)


def _write(
    tasks: Sequence[TaskT],
    known: Callable[[TaskT], RowT | None],
    compute: Callable[[TaskT], RowT],
    to_json: Callable[[Stamp, list[tuple[TaskT, RowT]]], bytes],
    path: str,
) -> None:
    """Compute the missing results of one experiment and write its file."""
    out, began = Path(attention_core.__file__).parent / path, time.monotonic()
    out.parent.mkdir(exist_ok=True)
    rows = [(task, row) for task in tasks if (row := known(task))] if "--continue" in sys.argv else []
    missing = [task for task in tasks if task not in {done for done, _row in rows}]
    for number, task in enumerate(missing, start=1):
        rows.append((task, compute(task)))
        if number % OFTEN == 0 or number == len(missing):
            out.write_bytes(to_json(stamp("cpu"), rows))
            print(f"{number}/{len(missing)} after {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
