"""Record the runs that the Learn page shows first: ``python -m attention_core.learning.record_runs [TASK ...]``.

For each task, every variant is first trained with each rate of ``rates.GRID`` on a seed that is not shown, and the rate
with the lowest loss is recorded. Then all runs of the page's default selection are trained with these rates. This takes
about ten minutes per task on one core.
"""

import json
import sys
from pathlib import Path

from attention_core.benchmarking.device import stamp
from attention_core.experiments import learning
from attention_core.learning import rates, recorded_runs
from attention_core.learning.defaults import SEEDS, default_plan
from attention_core.runtime.devices import use_threads

FOLDER = Path(__file__).parent / "recorded"
TUNING_SEED = 1000
"""Seed of the runs that choose the learning rates."""


def rows_of(plan: learning.Plan) -> list[learning.LearnRow]:
    """Run a plan to its end and return its rows; progress goes to the error stream."""
    rows: list[learning.LearnRow] = []
    tasks = 0
    while (task := learning.next_task(plan, rows)) is not None:
        rows += learning.run(task)
        tasks += 1
        sys.stderr.write(f"\r{tasks}/{learning.total(plan)}")
    sys.stderr.write("\n")
    return rows


def tune(task: str) -> dict[str, float]:
    """Return the rate with the lowest final loss for each variant of a task's default selection."""
    best: dict[str, tuple[float, float]] = {}
    for rate in rates.GRID:
        plan = default_plan(task, rate=rate, seeds=(TUNING_SEED,), tests=False)
        for found in rows_of(plan):
            if found.row.step == found.spec.steps:
                own = (found.row.loss, rate)
                best[found.row.variant] = min(own, best.get(found.row.variant, own))
    return {word: rate for word, (_loss, rate) in best.items()}


def main(keys: list[str]) -> None:
    """Tune and record the runs of some tasks."""
    use_threads()
    for task in keys:
        known = json.loads(rates.FILE.read_text("utf-8")) if rates.FILE.is_file() else {}
        rates.FILE.write_text(json.dumps(known | {task: tune(task)}, indent=1, sort_keys=True) + "\n", "utf-8")
        rates.tuned.cache_clear()
        found = rows_of(default_plan(task))
        data = recorded_runs.encode(stamp("cpu"), found, with_matrices=SEEDS[:1])
        (FOLDER / f"{task}.msgpack").write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1:] or ["recall"])
