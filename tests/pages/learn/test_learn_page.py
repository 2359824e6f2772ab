"""Tests of the Learn page: recorded results at first sight, training on request, refusals, and the link."""

from functools import partial
from urllib.parse import parse_qs

import numpy as np
import pytest
from driver import board, charts, go, links, numbers, open_page, visit

import attention_core as ac
from app.jobs import dispatch
from attention_core.experiments import learning
from attention_core.inputs import TrainedSource
from attention_core.learning import defaults, recorded_runs
from attention_core.learning.tasks import TASKS
from pages.learn.outcomes import outcomes

open_learn = partial(open_page, "learn")
PAIR = (ac.get("softmax"), ac.get("linear", feature_map="elu+1"))
QUICK = {"l_steps": 50, "variants": PAIR}


def press(at, label):
    next(button for button in at.button if button.label == label).click()
    return at.run()


def texts(at):
    return [each.value for each in at.markdown]


def test_the_recorded_runs_answer_at_first_sight():
    at = visit("learn", {})
    assert not at.exception
    assert not at.info
    assert not any("Not recorded" in each.value for each in at.caption)
    rows = recorded_runs.known(defaults.default_plan("recall"))
    found = outcomes(rows)
    [chart] = charts(at)
    drawn = {trace["name"]: trace for trace in chart["data"] if trace.get("name")}
    assert {each.name for each in found} <= set(drawn)
    for each in found:
        last = list(numbers(drawn[each.name]["y"]))[-1]
        assert last == pytest.approx(each.accuracy)
    assert any("is correct in 25% of the cases." in text for text in texts(at))
    assert any(each.value.startswith("Recorded on") for each in at.caption)


def test_the_recorded_runs_hold_the_default_selection_of_their_tasks():
    plan = defaults.default_plan("recall")
    rows = recorded_runs.known(plan)
    assert len([row for row in rows if not row.is_test]) == len(plan.specs) * (1 + defaults.STEPS // learning.EVERY)
    assert len([row for row in rows if row.is_test]) == len(plan.specs) * len(plan.tests)
    with_matrices = [row for row in rows if row.matrices is not None]
    assert {row.spec.seed for row in with_matrices} == {defaults.SEEDS[0]}
    for row in with_matrices:
        assert row.matrices.shape == (2, 32, 32)
    softmax = [row.matrices for row in with_matrices if row.spec.model.word == "softmax"]
    for matrices in softmax:
        assert matrices.sum(-1) == pytest.approx(1.0, abs=0.15)  # stored with 7 bits


@pytest.mark.parametrize("view", ["race", "attention", "longer", "capacity"])
@pytest.mark.parametrize("task", ["recall", "maximum"])
def test_every_view_opens_without_a_run(view, task):
    at = open_learn(l_view=view, l_task=task)
    assert not at.exception
    assert any(TASKS[task].summary in text for text in texts(at))


def test_settings_that_are_not_recorded_ask_for_a_press():
    at = open_learn(l_layers=1, **QUICK)
    assert not at.exception
    assert "These settings are not recorded." in at.info[0].value
    assert not charts(at)


def test_a_press_trains_and_shows_the_same_numbers_as_the_library():
    at = press(open_learn(**QUICK), "Train on this machine")
    assert not at.exception
    rows = at.session_state["learn.run"].rows
    plan = learning.plan(
        [each.word for each in PAIR], steps=50, lengths=defaults.LONGER["recall"], more_items=defaults.MORE["recall"]
    )
    expected = []
    while (task := learning.next_task(plan, expected)) is not None:
        expected += learning.run(task)
    assert [(r.row.variant, r.row.step, r.row.accuracy) for r in rows] == [
        (r.row.variant, r.row.step, r.row.accuracy) for r in expected
    ]
    assert any(each.value.startswith("Trained on this server.") for each in at.caption)


def test_a_trained_model_opens_on_matrices_without_another_training(monkeypatch):
    at = press(open_learn(**QUICK), "Train on this machine")
    found = {each.label: each for each in links(at)}
    assert {"Softmax", "Linear"} <= set(found)
    weights = at.session_state["learn.run"].rows
    last = max((each for each in weights if each.row.variant == "softmax" and not each.is_test), key=by_step)
    monkeypatch.setattr(dispatch, "stream", None)
    go(at, "matrices", parse_qs(found["Softmax"].query_string))
    assert not at.exception
    record = TrainedSource(last.spec, 0, 1, weights=last.checkpoint.weights).load()
    expected = ac.get("softmax").weights(record.q, record.k, causal=True)[0].numpy()
    drawn = board(at, "matrices.board")[1]["softmax"][1]
    assert np.nan_to_num(drawn) == pytest.approx(expected, abs=2e-3)
    assert np.nan_to_num(drawn) == pytest.approx(last.matrices[1].astype(float), abs=2e-3)


def by_step(found):
    return found.row.step


def test_an_untrained_model_has_no_link():
    at = open_learn(l_layers=1, **QUICK)
    assert not links(at)


def test_a_variant_that_cannot_be_trained_on_the_task_says_why():
    at = open_learn(variants=(ac.get("softmax"), ac.get("nystrom")))
    assert not at.exception
    assert any("Nyström cannot be trained on this task" in each.value for each in at.caption)
    at = open_learn(variants=(ac.get("softmax"), ac.get("nystrom")), l_task="digits")
    assert not any("cannot be trained" in each.value for each in at.caption)


@pytest.mark.parametrize("bad", [{"l_steps": 7}, {"l_task": "sorting"}, {"l_layers": 99}, {"l_view": "nothing"}])
def test_a_bad_link_opens_the_page_with_its_default(bad):
    at = open_learn(**{name: str(value) for name, value in bad.items()})
    assert not at.exception
