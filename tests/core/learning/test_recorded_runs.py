"""Tests of recorded training runs: reading returns the written rows, and the recorded file matches its plan."""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from attention_core.benchmarking.device import stamp
from attention_core.experiments import learning
from attention_core.learning import rates, recorded_runs
from attention_core.learning.defaults import SEEDS, default_plan
from attention_core.learning.model import ModelSpec
from attention_core.learning.recorded_runs import LEVELS
from attention_core.learning.studies import STUDIES, rotary_plan
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import evaluate, evaluation_batch, initial_model


@pytest.fixture
def stored(monkeypatch):
    """Return a function that stores rows and reads those of a plan."""

    def store(rows, plan, seeds=(0,)):
        data = recorded_runs.encode(stamp("cpu"), rows, with_matrices=seeds)
        found = recorded_runs.decode(data)
        monkeypatch.setattr(recorded_runs, "recorded_document", lambda task: found)
        return recorded_runs.recorded_rows(plan)

    return store


def small(**settings):
    return learning.plan(
        ["softmax", "deltanet"], **{"length": 12, "items": 2, "steps": 4, "every": 2, "lengths": (24,)} | settings
    )


def finished(plan):
    rows = []
    while tasks := learning.next_tasks(plan, rows):
        rows += learning.run(tasks[0])
    return rows


def test_stored_rows_are_exact_and_stored_matrices_accurate_to_half_a_level(stored):
    plan = small(seeds=(0, 1))
    rows = finished(plan)
    found = stored(rows, plan)
    key = lambda row: (row.spec.model.word, row.spec.seed, row.row.step, row.is_test)  # noqa: E731
    for own, read in zip(sorted(rows, key=key), sorted(found, key=key), strict=True):
        assert (read.spec, read.row, read.is_test) == (own.spec, own.row, own.is_test)
        assert (read.matrices is None) == (own.is_test or own.spec.seed == 1)
        if read.matrices is not None:
            own_matrices = own.matrices.astype(np.float32)
            scale = np.abs(own_matrices).max((1, 2), keepdims=True)
            assert np.abs(read.matrices - own_matrices).max() <= (scale / (2 * LEVELS)).max() * 1.001


def test_only_runs_with_the_same_settings_are_found(stored):
    plan = small()
    rows = finished(plan)
    assert {row.spec.model.word for row in stored(rows, small(seeds=(0, 1)))} == {"softmax", "deltanet"}
    assert not stored(rows, small(steps=6))
    assert not stored(rows, small(rates=(0.5, 0.5)))
    assert {row.spec.model.word for row in stored(rows[:1], plan)} == {"softmax"}


def test_a_task_without_a_file_has_no_runs():
    assert recorded_runs.recorded_document("sorting") is None
    assert not recorded_runs.recorded_rows(learning.plan(["softmax"], task="parity", steps=7))


WHOLE = ["recall", "copying", "induction", "maximum", "parity", "characters", "digits"]
"""Tasks whose default selection is recorded. The other tasks have recorded runs of some variants at most."""


def test_only_some_tasks_have_their_default_selection_recorded():
    done = [
        key
        for key in TASKS
        if {row.spec for row in recorded_runs.recorded_rows(default_plan(key))} == set(default_plan(key).specs)
    ]
    assert done == WHOLE


@pytest.mark.parametrize("task", WHOLE)
def test_the_recorded_runs_match_the_default_plan_and_start_untrained(task):
    plan = default_plan(task)
    rows = recorded_runs.recorded_rows(plan)
    assert {row.spec for row in rows} == set(plan.specs)
    assert {row.spec.seed for row in rows} == set(SEEDS)
    assert {row.spec.rate for row in rows} <= set(rates.GRID)
    first = next(row for row in rows if row.row.step == 0 and not row.is_test)
    loss, accuracy = evaluate(
        initial_model(first.spec), evaluation_batch(first.spec, first.spec.length, first.spec.items)
    )
    assert first.row.loss == pytest.approx(loss, rel=1e-4)
    assert first.row.accuracy == pytest.approx(accuracy, abs=0.01)


def test_tuned_rates_are_read_by_task_and_variant():
    assert rates.rate(ModelSpec(task="recall", word="softmax")) == rates.tuned_rates()["recall"]["softmax"]
    assert rates.rate(ModelSpec(task="recall", word="local~window~3")) == rates.DEFAULT


def test_a_model_without_a_tuned_rate_uses_the_rate_of_its_variant(monkeypatch):
    monkeypatch.setattr(rates, "tuned_rates", lambda: {"recall": {"linear": 0.1, "linear layers=1 convolution=0": 0.2}})
    rate = lambda **model: rates.rate(ModelSpec(task="recall", word="linear", **model))  # noqa: E731
    assert (rate(), rate(layers=1), rate(layers=1, convolution=0)) == (0.1, 0.1, 0.2)
    assert rates.model_name(ModelSpec(task="digits", word="softmax", positions="learned", tokens=64)) == "softmax"
    assert rates.model_name(ModelSpec(task="digits", word="softmax")) == "softmax positions=none"


def test_training_time_is_estimated_from_recorded_steps():
    specs = default_plan("recall").specs
    own = next(spec for spec in specs if spec.model.word == "deltanet" and spec.seed == SEEDS[0])
    end = next(
        row for row in recorded_runs.recorded_rows(default_plan("recall")) if row.spec == own and row.row.step == 400
    )
    changed = lambda **model: replace(own, model=replace(own.model, **model))  # noqa: E731
    assert recorded_runs.estimated_seconds(own) == pytest.approx(end.row.seconds)
    assert recorded_runs.estimated_seconds(replace(own, seed=7, steps=100)) == pytest.approx(end.row.seconds / 4)
    assert recorded_runs.estimated_seconds(changed(layers=4, heads=2)) == pytest.approx(2 * end.row.seconds)
    assert recorded_runs.estimated_seconds(changed(word="cosine")) is None
    for task in WHOLE:
        [first, *_rest] = learning.plan(["softmax"], task=task, steps=100).specs
        assert recorded_runs.estimated_seconds(first) is not None


def test_the_estimated_time_of_a_recorded_model_is_its_recorded_time():
    [spec] = learning.plan(["softmax"], layers=1).specs
    end = next(row.row for row in recorded_runs.recorded_rows(learning.Plan(specs=(spec,))) if row.row.step == 400)
    assert recorded_runs.estimated_seconds(spec) == pytest.approx(end.seconds)


ANCHORS = recorded_runs.recorded_rows(default_plan("recall"))


def last(word):
    """Return the accuracies of a variant's trained models by seed."""
    own = [row for row in ANCHORS if row.spec.model.word == word and not row.is_test]
    return [row.row.accuracy for row in own if row.row.step == row.spec.steps]


def accuracy_with(word, items):
    """Return the median accuracy of a variant's trained models with this number of pairs."""
    own = [row.row for row in ANCHORS if row.spec.model.word == word and row.is_test]
    found = sorted(row.accuracy for row in own if row.items == items)
    return found[len(found) // 2]


def test_full_linear_and_delta_attention_learn_recall_and_a_short_window_does_not():
    for word in ("softmax", "linear", "deltanet"):
        assert min(last(word)) >= 0.95
    assert max(last("local")) < 0.95, "the window is shorter than the distance to some pairs"


def test_linear_attention_forgets_with_more_pairs_before_softmax_does():
    assert accuracy_with("softmax", 24) >= 0.95 > accuracy_with("linear", 24)


def test_the_induction_stripe_forms_in_the_second_layer_while_the_task_is_learned():
    rows = [row for row in recorded_runs.recorded_rows(default_plan("induction")) if row.spec.model.word == "softmax"]
    rows = [row for row in rows if row.matrices is not None]
    half = rows[0].spec.length // 2
    queries = np.arange(half, 2 * half - 1)
    # Each symbol of the second half attends to the symbol that followed it in the first half.
    stripe = {row.row.step: row.matrices[:, queries, queries - half + 1].mean(-1) for row in rows}
    learned = min(row.row.step for row in rows if row.row.accuracy >= 0.95)
    assert max(stripe[0]) < 0.1
    assert all(layers[1] > 0.9 > layers[0] for step, layers in stripe.items() if step >= learned)


def test_rotary_positions_matter_more_than_the_variant_on_longer_sequences():
    found = {}
    for plan in (rotary_plan(), *STUDIES["relu2_longer"]()):
        for row in recorded_runs.recorded_rows(plan):
            if row.is_test and row.row.items == 4:
                key = row.spec.model.word, row.spec.model.positions, row.row.length
                found.setdefault(key, []).append(row.row.accuracy)
    assert {len(shares) for shares in found.values()} == {3}
    share = {key: median(shares) for key, shares in found.items()}
    assert min(value for (_word, _positions, length), value in share.items() if length == 32) >= 0.95
    lost = {
        (word, positions): share[word, positions, 32] - share[word, positions, 256]
        for word, positions, _length in share
    }
    between_variants = abs(lost["relu2", "none"] - lost["softmax", "none"])
    assert all(lost[word, "rotary"] - lost[word, "none"] > between_variants for word in ("softmax", "relu2"))
    assert min(share[word, "none", 256] for word in ("softmax", "relu2")) >= 0.95
