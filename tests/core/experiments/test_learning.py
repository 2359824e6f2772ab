"""Tests of the experiment that trains tiny models: its order, its tests, its limits and its command."""

import json
import math

import numpy as np
import pytest
import torch

from attention_core.__main__ import main
from attention_core.errors import InputError
from attention_core.experiments import learning
from attention_core.learning.rates import DEFAULT
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import model_of
from attention_core.limits import HOSTED


def small(words=("softmax", "linear"), **settings):
    return learning.plan(words, **{"length": 12, "items": 2, "steps": 5, "every": 2} | settings)


def finished(plan):
    rows, done = [], []
    while tasks := learning.next_tasks(plan, rows):
        done.append(tasks[0])
        rows += learning.run(tasks[0])
    return rows, done


def test_models_train_alternately_and_are_tested_at_the_end():
    plan = small(seeds=(0, 1), lengths=(24,), more_items=(3, 8))
    rows, tasks = finished(plan)
    assert len(tasks) == learning.total(plan) == 4 * (1 + 3 + 1)
    trained = [row for row in rows if not row.is_test]
    assert [row.row.step for row in trained] == [0] * 4 + [2] * 4 + [4] * 4 + [5] * 4
    assert [(row.row.variant, row.row.seed) for row in trained[:4]] == [
        ("softmax", 0),
        ("linear", 0),
        ("softmax", 1),
        ("linear", 1),
    ]
    tested = [(row.row.length, row.row.items) for row in rows if row.spec == plan.specs[0] and row.is_test]
    assert tested == [(24, 2), (12, 3), (24, 8)]
    assert all(math.isfinite(row.row.loss) for row in rows)


def test_a_run_that_is_interrupted_anywhere_continues_with_the_same_numbers():
    plan = small(lengths=(24,))
    whole, _ = finished(plan)
    rows = []
    while tasks := learning.next_tasks(plan, list(rows)):
        rows += learning.run(tasks[0])
    numbers = [(row.row.variant, row.row.step, row.row.loss, row.row.accuracy) for row in whole]
    assert numbers == [(row.row.variant, row.row.step, row.row.loss, row.row.accuracy) for row in rows]


def test_a_run_without_tests_ends_with_the_last_step():
    plan = small(("softmax",), steps=4)
    rows, _ = finished(plan)
    assert [row.row.step for row in rows] == [0, 2, 4]
    assert learning.total(plan) == 3


def test_the_matrices_of_a_checkpoint_are_averages_over_heads_on_the_example():
    [spec] = small(("softmax",), heads=2).specs
    [row] = learning.run(learning.TrainTask(spec=spec, start=None, until=2))
    model = model_of(spec, row.checkpoint.weights)
    for shown, (q, k, _) in zip(row.matrices, model.qkv_by_layer(learning.example_batch(spec).inputs), strict=True):
        logits = (q @ k.mT / q.shape[-1] ** 0.5)[0]
        hidden = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
        wanted = logits.masked_fill(hidden, -math.inf).softmax(-1)
        assert np.abs(shown - (wanted[0] + wanted[1]).numpy() / 2).max() < 1e-3
        assert (wanted[0] - wanted[1]).abs().max() > 1e-2, "the heads differ"


def test_defaults_come_from_the_task():
    [spec] = learning.plan(["softmax"], task="copying").specs
    assert (spec.length, spec.items) == (TASKS["copying"].length, TASKS["copying"].items)
    assert spec.model.positions == "learned"
    assert spec.model.tokens == spec.length
    assert learning.plan(["softmax"], lengths=[64]).specs[0].model.tokens == 0
    assert learning.plan(["softmax"], task="copying", lengths=[64]).specs[0].model.tokens == 64


def test_variant_words_leave_out_settings_at_their_defaults():
    [first, second] = learning.plan(["linear~feature_map~elu+1", "local~window~8"]).specs
    assert (first.model.word, second.model.word) == ("linear", "local~window~8")


def test_a_given_rate_replaces_the_recorded_one():
    assert small(rates=(0.5, 0.25)).specs[1].rate == 0.25
    assert learning.plan(["local~window~5"]).specs[0].rate == DEFAULT


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"every": 0}, "every is 0"),
        ({"seeds": ()}, "seeds is 0"),
        ({"seeds": range(31)}, "seeds is 62"),
        ({"lengths": (2,)}, "no sequences of 2 tokens"),
        ({"more_items": (31,)}, "cannot have 31 pairs or symbols"),
        ({"task": "recal"}, "Did you mean 'recall'"),
        ({"heads": 3}, "cannot be divided evenly"),
    ],
)
def test_an_impossible_plan_is_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        small(**settings)


def test_a_hosted_lab_allows_fewer_training_steps(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    small(steps=HOSTED.learn_steps)
    with pytest.raises(InputError, match=f"from 1 to {HOSTED.learn_steps}"):
        small(steps=HOSTED.learn_steps + 1)


@pytest.mark.parametrize(("items", "length"), [(4, 32), (10, 32), (11, 64), (21, 64), (22, 128)])
def test_more_items_need_a_longer_sequence_if_they_do_not_fit(items, length):
    assert learning.length_with_items(TASKS["recall"], 32, items) == length


COMMAND = ["learn", "--variants", "softmax", "deltanet~strength~2.0", "--steps", "4", "--every", "2", "--length", "12"]
COMMAND += ["--items", "2", "--seeds", "2", "--seed", "5", "--test-lengths", "24"]


def test_the_command_prints_rows_as_json(capsys):
    assert main([*COMMAND, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"variant", "task", "seed", "step", "length", "loss", "accuracy", "seconds"} <= set(rows[0])
    assert {row["seed"] for row in rows} == {5, 6}
    assert {row["variant"] for row in rows} == {"softmax", "deltanet~strength~2.0"}
    assert [row["length"] for row in rows[-4:]] == [24] * 4


def test_the_command_prints_a_loss_that_is_not_finite_as_null(capsys):
    assert main([*COMMAND, "--rate", "1e30", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert {row["loss"] is None for row in rows if row["step"]} == {True}


def test_the_command_prints_a_table_whose_columns_are_aligned(capsys):
    assert main(COMMAND) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 4 * (3 + 1)
    assert {len(line) for line in lines} == {len(lines[0])}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--variants", "none_such"], "none_such"),
        (["--variants", "nystrom"], "Nyström cannot be trained on this task"),
        (["--variants", "softmax", "--task", "sorting"], "There is no task 'sorting'"),
        (["--variants", "softmax", "--items", "40"], "Choose a number from 1 to 10"),
    ],
)
def test_an_impossible_command_ends_with_one_error_message(capsys, arguments, reason):
    assert main(["learn", *arguments]) == 2
    captured = capsys.readouterr()
    assert reason in captured.err
    assert "Traceback" not in captured.err
