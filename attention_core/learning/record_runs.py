"""Records the training runs that the app shows first: ``python -m attention_core.learning.record_runs [TASK ...]``.

For each task, these are the runs for the claims about trained models, the runs with one part removed or with rotary
positions, and the runs of the Learn page's default selection. Each model is first trained with each learning rate of
``rates.GRID`` on a seed that is not shown, and the learning rate with the lowest loss is recorded. Then the runs are
trained with these rates. This takes about ten minutes per task on one core. Every finished run is written, and recorded
runs are skipped, so the command can be stopped and continued.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from attention_core.benchmarking.device import stamp
from attention_core.experiments import learning
from attention_core.experiments.learning import LearnRow, Plan
from attention_core.learning import rates, recorded_runs
from attention_core.learning.defaults import SEEDS, default_plan
from attention_core.learning.studies import STUDIES, removed_parts_plan, rotary_plan
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import TrainSpec
from attention_core.runtime.devices import use_threads

FOLDER = Path(__file__).parent / "recorded"
TUNING_SEED = 1000
"""Seed of the runs that choose the learning rates."""


def run_plan(plan: Plan) -> list[LearnRow]:
    """Train all models of a plan and return the rows."""
    rows: list[LearnRow] = []
    while tasks := learning.next_tasks(plan, rows):
        rows += learning.run(tasks[0])
    return rows


def plans(task: str) -> Iterator[tuple[Plan, bool]]:
    """Yield each plan of a task, with the rates recorded so far, and whether its attention matrices are recorded."""
    for study in STUDIES.values():
        for plan in study():
            if plan.specs[0].model.task == task:
                yield plan, False
    if task == "recall":
        yield removed_parts_plan(), False
        yield rotary_plan(), False
    yield default_plan(task), True


def tune(spec: TrainSpec) -> None:
    """Train a model with each rate of the grid, and record the rate with the lowest final loss.

    A loss that is not finite counts as infinite. A model with a recorded rate is not trained again.
    """
    tuned, task, name = rates.tuned_rates(), spec.model.task, rates.model_name(spec.model)
    if name in tuned.get(task, {}):
        return
    losses = {}
    for rate in rates.GRID:
        row = run_plan(Plan(specs=(replace(spec, rate=rate, seed=TUNING_SEED),)))[-1].row
        losses[rate] = row.loss if row.loss < float("inf") else float("inf")
        _report(row.variant, f"rate {rate:g}", f"loss {row.loss:.3f}", f"accuracy {row.accuracy:.3f}")
    best = min(losses, key=losses.__getitem__)
    rates.FILE.write_text(
        json.dumps(tuned | {task: tuned.get(task, {}) | {name: best}}, indent=1, sort_keys=True) + "\n", "utf-8"
    )
    rates.tuned_rates.cache_clear()


def record(task: str) -> None:
    """Tune the rates of a task, then train and record its runs; skip runs that are already recorded."""
    file = FOLDER / f"{task}.msgpack"
    for number in range(len(list(plans(task)))):
        for spec in {each.model: each for each in _plan(task, number)[0].specs}.values():
            tune(spec)
        plan, with_matrices = _plan(task, number)
        for spec in plan.specs:
            document = recorded_runs.decode(file.read_bytes()) if file.is_file() else None
            seeds = SEEDS[:1] if with_matrices else ()
            if document is not None and recorded_runs.is_complete(document, plan, spec, seeds):
                continue
            rows = run_plan(replace(plan, specs=(spec,)))
            file.write_bytes(recorded_runs.encode(stamp("cpu"), rows, with_matrices=seeds, earlier=document))
            _report(*recorded_runs.run_name(spec).split(", "), f"accuracy {rows[-1].row.accuracy:.3f}")


def _plan(task: str, number: int) -> tuple[Plan, bool]:
    """Return the plan with this index in ``plans(task)``, with the rates recorded so far."""
    return list(plans(task))[number]


def _report(*words: str) -> None:
    sys.stderr.write(" ".join(words) + "\n")


if __name__ == "__main__":
    use_threads()
    for key in sys.argv[1:] or TASKS:
        record(key)
