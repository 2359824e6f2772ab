"""Record the results that the Model page shows first for the built-in texts: ``python -m pages.model.record``.

This takes a quarter of an hour. Repeat it if a changed model, text, variant or task affects the numbers. The file is
stamped. With ``--continue``, rows that the file already has are kept, for example after an interrupted run.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attention_core
from app.state import presets
from attention_core.benchmarking.device import stamp, use_threads
from attention_core.experiments import swap
from attention_core.experiments.swap import SwapTask, records
from pages.model.options import FIRST, OWN, TEXTS, depth
from pages.model.places import OFFERED

OFTEN = 40
"""Number of tasks after which the file is written."""


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


def main() -> None:
    """Compute the missing results and write the file."""
    use_threads()
    out = Path(attention_core.__file__).parent / records.RECORDED
    out.parent.mkdir(exist_ok=True)
    there = {task: row for task in wanted() if (row := swap.known(task))} if "--continue" in sys.argv else {}
    asked, rows, began = [task for task in wanted() if task not in there], list(there.items()), time.monotonic()
    for number, task in enumerate(asked, start=1):
        rows.append((task, swap.compute(task)))
        if number % OFTEN == 0 or number == len(asked):
            out.write_bytes(records.to_json(stamp("cpu"), rows))
            print(f"{number}/{len(asked)} after {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
