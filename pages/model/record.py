"""Record what the Model page opens with on the built-in texts: ``python -m pages.model.record``, a quarter of an hour.

Written again whenever the model, the texts, a variant or a task changes what a number means; the file is stamped. With
``--continue`` what the file holds already is kept, as after a run that was broken off.
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
"""Tasks after which the file is written."""


def tasks() -> Iterator[SwapTask]:
    """What is recorded, what a first visit shows before all else."""
    everywhere, texts = tuple(range(depth())), [presets.texts()[name] for name in TEXTS if name != OWN]
    for words in (FIRST, OFFERED):
        for text in texts:
            yield from swap.tasks(text, words, everywhere, seeds=swap.SEEDS)
    for text in texts:
        yield from swap.budget_tasks(text, FIRST, everywhere, swap.PERIOD * 2, stray=True)
        for edge in (*swap.EDGES, "single"):
            yield from swap.layer_tasks(text, [*FIRST, *swap.FLOORS], edge, depth())


def wanted() -> Sequence[SwapTask]:
    """The same, each once, and in detail where any asks for that."""
    found: dict[tuple[str, str | None], SwapTask] = {}
    for task in tasks():
        name = type(task).__name__, records.key(task)
        if name not in found or getattr(task, "detail", False):
            found[name] = task
    return list(found.values())


def main() -> None:
    """Compute what is wanted and write the file."""
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
