"""Tests of the command that records runs: tuned rates, the written file, and skipping recorded runs."""

import json

import pytest

from attention_core.experiments import learning
from attention_core.learning import rates, record_runs, recorded_runs
from attention_core.learning.defaults import default_plan
from attention_core.learning.studies import STUDIES
from attention_core.learning.tasks import TASKS


def small(**settings):
    return learning.plan(["softmax"], **{"length": 12, "items": 2, "steps": 4, "seeds": (0, 1)} | settings)


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """Return the runs that the command trains, with a short plan, an empty folder and no known rates."""
    trained = []
    monkeypatch.setattr(record_runs, "FOLDER", tmp_path)
    monkeypatch.setattr(rates, "FILE", tmp_path / "rates.json")
    monkeypatch.setattr(
        record_runs, "plans", lambda task: iter([(small(convolution=0), False), (small(lengths=(24,)), True)])
    )
    true = record_runs.run_plan
    monkeypatch.setattr(record_runs, "run_plan", lambda plan: trained.extend(plan.specs) or true(plan))
    rates.tuned_rates.cache_clear()
    yield trained
    rates.tuned_rates.cache_clear()


def test_the_command_tunes_records_and_skips_recorded_runs(recorder, tmp_path):
    record_runs.record("recall")
    tuning = [spec for spec in recorder if spec.seed == record_runs.TUNING_SEED]
    assert len(tuning) == 2 * len(rates.GRID)
    assert len(recorder) == len(tuning) + 4
    best = json.loads((tmp_path / "rates.json").read_text())["recall"]
    assert best.keys() == {"softmax", "softmax convolution=0"}
    for name, rate in best.items():
        losses = {
            spec.rate: learning.measure(spec, *learning.train_until(spec, 4)).loss
            for spec in tuning
            if rates.model_name(spec.model) == name
        }
        assert rate == min(losses, key=losses.get)
    written = recorded_runs.decode((tmp_path / "recall.msgpack").read_bytes())
    runs = {
        recorded_runs.run_name(spec): spec
        for plan in (small(convolution=0), small(lengths=(24,)))
        for spec in plan.specs
    }
    assert written.runs.keys() == runs.keys()
    for name, rows in written.runs.items():
        has_matrices = not runs[name].seed and bool(runs[name].model.convolution)
        assert bool(rows[0].levels) == has_matrices
        assert sum(row.is_test for row in rows) == (1 if runs[name].model.convolution else 0)
    count = len(recorder)
    record_runs.record("recall")
    assert len(recorder) == count


def test_a_rate_with_a_loss_that_is_not_finite_is_not_chosen(recorder, monkeypatch):
    def rows_of(plan):
        [spec] = plan.specs
        found = learning.run(learning.TrainTask(spec=spec, start=None, until=0))[0]
        loss = {rates.GRID[0]: 3.0, rates.GRID[1]: float("nan"), rates.GRID[2]: 2.0}[spec.rate]
        return [learning.LearnRow(spec=spec, row=learning.Row(**{**vars(found.row), "loss": loss}))]

    monkeypatch.setattr(record_runs, "run_plan", rows_of)
    record_runs.tune(small().specs[0])
    assert rates.tuned_rates() == {"recall": {"softmax": rates.GRID[2]}}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_records_its_claims_and_its_default_selection(task):
    found = list(record_runs.plans(task))
    assert found[-1] == (default_plan(task), True)
    studies = [plan for study in STUDIES.values() for plan in study() if plan.specs[0].model.task == task]
    assert [plan for plan, _matrices in found][: len(studies)] == studies
    assert {spec.model.task for plan, _matrices in found for spec in plan.specs} == {task}


def test_run_names_leave_out_fields_at_their_defaults():
    [spec] = small(seeds=(0,)).specs
    assert recorded_runs.run_name(spec) == "model=(task=recall, word=softmax), length=12, items=2, steps=4, rate=0.01"
    other = small(seeds=(3,), layers=1).specs[0]
    assert recorded_runs.run_name(other).startswith("model=(task=recall, word=softmax, layers=1), ")
    assert recorded_runs.run_name(other).endswith(", seed=3")
