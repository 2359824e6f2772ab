"""Training runs that visitors share, so that a model is not trained again if another visitor has trained it.

The cache holds each model's measurements and its last checkpoint. A later visitor continues from this checkpoint.
Tasks that several visitors need at the same time run once.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from app.jobs import cached, dispatch
from app.ui.sources import trained_form
from attention_core.experiments import learning
from attention_core.experiments.learning import LearnRow, Plan
from attention_core.experiments.task import Task
from attention_core.learning import recorded_runs
from attention_core.learning.model import Positions
from attention_core.learning.rates import rate
from attention_core.learning.train import TrainSpec
from attention_core.runtime.cache import ByteLRUCache, Frozen, digest

OTHER_POSITIONS: dict[Positions, Positions] = {"none": "rotary", "rotary": "none"}
"""For each of the two compared position encodings, the other one."""

_cache: ByteLRUCache[Frozen[tuple[LearnRow, ...]]] = cached.cache(8, 2)


def next_tasks(plan: Plan, rows: list[LearnRow]) -> Sequence[Task]:
    """Return the tasks of a run that can start now, after an exchange of measurements with the cache.

    Args:
        plan: the models to train.
        rows: the measurements of the run so far. They are stored in the cache, and replaced by the cached ones if
            another visitor's run is further.
    """
    all_rows: list[LearnRow] = []
    for spec in plan.specs:
        key = digest((spec, plan.every))
        spec_rows, cached_rows = _without_repetitions([each for each in rows if each.spec == spec]), _cache.known(key)
        if cached_rows is not None and len(cached_rows.value) >= len(spec_rows):
            spec_rows = cached_rows.value
        elif not spec_rows and plan.every == learning.MEASURE_INTERVAL:
            # Another page may have trained the model and measured it at the same steps, or only after the last step. In
            # the second case, only one row is cached. It is not used, because the curve needs the earlier measurements.
            trained = dispatch.cached_rows("learning", trained_form.task_of(spec)) or ()
            spec_rows = trained if len(trained) > 1 else ()
        if spec_rows and (cached_rows is None or len(cached_rows.value) < len(spec_rows)):
            _cache.drop(key)
            spec_rows = _cache.get(key, partial(Frozen, spec_rows)).value
        all_rows += spec_rows
    rows[:] = all_rows
    return learning.next_tasks(plan, rows)


def known_rows(spec: TrainSpec) -> Sequence[LearnRow]:
    """Return the recorded measurements of a model, or else the cached ones of a visitor's run; empty without either."""
    cached_rows = _cache.known(digest((spec, learning.MEASURE_INTERVAL)))
    return recorded_runs.recorded_rows(Plan(specs=(spec,))) or (() if cached_rows is None else cached_rows.value)


def counterparts(rows: Sequence[LearnRow]) -> list[LearnRow]:
    """Return the measurements of the same models with the other position encoding, if recorded or cached."""
    rows_of_others: list[LearnRow] = []
    for spec in dict.fromkeys(each.spec for each in rows if each.spec.model.positions in OTHER_POSITIONS):
        model = replace(spec.model, positions=OTHER_POSITIONS[spec.model.positions])
        rows_of_others += known_rows(replace(spec, model=model, rate=rate(model)))
    return rows_of_others


def _without_repetitions(rows: Sequence[LearnRow]) -> tuple[LearnRow, ...]:
    """Return one measurement per training step or test, and remove all checkpoints except the last one."""
    unique = {(each.is_test, each.row.step, each.row.length, each.row.items): each for each in rows}
    last = max((i for i, each in enumerate(unique.values()) if each.checkpoint is not None), default=-1)
    return tuple(
        each if i == last or each.checkpoint is None else replace(each, checkpoint=None)
        for i, each in enumerate(unique.values())
    )
