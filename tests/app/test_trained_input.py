"""Tests of a tiny model, trained on the server, as input: a link trains it once for all visitors and pages."""

import numpy as np
import pytest
from driver import board, open_page, spoken, visit

import attention_core as ac
from app.jobs import dispatch, runs
from app.state.session import is_run_allowed
from app.ui.sources import trained_form
from attention_core.experiments import learning
from attention_core.inputs import TrainedSource
from attention_core.inputs.trained import run_from_words, training_run, words_of
from attention_core.learning import rates
from attention_core.limits import HOSTED
from pages.matrices.comparison import BOARD

WORDS = ["recall", "softmax", "steps~4"]
LINK = {"input": ["trained"], "trained": WORDS, "causal": ["1"], "variants": ["softmax", "linear"]}


@pytest.fixture
def trainings(monkeypatch):
    """Run tasks in this process, and return the training runs that were begun."""
    monkeypatch.setenv("ATTENTION_LAB_WORKERS", "0")
    found, steps = [], learning.train_until

    def counted(spec, until, start):
        if start is None:
            found.append(words_of(spec))
        return steps(spec, until, start)

    monkeypatch.setattr(learning, "train_until", counted)
    monkeypatch.setattr(dispatch, "workers", lambda: None)
    return found


def test_a_link_trains_the_model_once_and_shows_its_matrices(trainings):
    link = {**LINK, "trained": [*WORDS, "seed~11"], "sequence": ["5"], "layer": ["1"]}
    first = visit("matrices", link)
    assert trainings == [[*WORDS, "seed~11"]]
    second = visit("matrices", link)
    assert trainings == [[*WORDS, "seed~11"]]  # The second visitor uses the same weights.
    source = TrainedSource.of(*WORDS, "seed~11", sequence=5, layer=1)
    record = source.load()
    expected = ac.get("softmax").weights(record.q, record.k, causal=True)[0].numpy()
    for at in (first, second):
        assert "Associative recall with Softmax, 4 steps · layer 1 · head 0 · 32 tokens" in spoken(at, "caption")
        drawn = board(at, BOARD)[1]["softmax"][1]
        np.testing.assert_allclose(np.nan_to_num(drawn), expected, atol=2e-3)
    assert any("of this model's answers are correct. Guessing is correct in 25%" in c.value for c in first.caption)


@pytest.mark.parametrize("page", ["masks", "entropy", "error", "causal", "inside", "claims"])
def test_other_pages_open_with_a_trained_model(page):
    at = visit(page, LINK)
    assert not at.error
    # Masks names its input only if a mask depends on queries and keys.
    assert page == "masks" or "Associative recall with Softmax, 4 steps" in spoken(at, "caption")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["recall"], "“recall”"),
        (["recall", "softmax", "steps~99999999"], "“recall, softmax, steps\\~9999999…”"),
        (["recall", "nystrom"], "“recall, nystrom”"),
        (["nothing", "softmax", "x" * 5000], "“nothing, softmax, xxxxxxxxxxxx…”"),
    ],
)
def test_a_forged_link_is_refused_with_one_sentence(words, expected, trainings):
    dispatch.cache_rows("learning", trained_form.task_of(training_run("recall", rate=0.01, steps=200)), (measured(),))
    trainings.clear()
    at = visit("matrices", {**LINK, "trained": words})
    [warning] = at.warning
    assert warning.value == (
        "The link contains values that this page does not accept. For `trained`, the page uses the default "
        f"instead of {expected} (allowed: a task, a variant that can be trained on this task, and training settings, "
        "for example steps~200, with at most 20,000 steps)."
    )
    assert not trainings


def measured():
    """Return the measurement of an untrained model, in place of one that takes seconds to train."""
    [row] = learning.run(learning.TrainTask(spec=training_run("recall", steps=1), start=None, until=1))
    return row


def test_the_panel_changes_the_task_the_variant_the_steps_and_the_sequence(trainings):
    at = visit("matrices", {**LINK, "trained": [*WORDS, "seed~13"]})
    choose(at, "Task", "digits")
    spec = at.session_state["trained"]
    assert (spec.model.task, spec.model.word, spec.model.positions, spec.steps) == ("digits", "softmax", "learned", 4)
    assert not at.session_state["causal"]
    choose(at, "Trained with", "nystrom")
    assert at.session_state["trained"].model.word == "nystrom"
    assert "Its own attention matrix is that of Nyström, not of softmax." in at.sidebar.info[0].value
    choose(at, "Task", "recall")
    spec = at.session_state["trained"]
    assert (spec.model.task, spec.model.word) == ("recall", "softmax")  # It was Nyström, which cannot be causal.
    assert at.session_state["causal"]
    at.number_input(key="sequence").set_value(9).run()
    assert trainings == [
        [*WORDS, "seed~13"],
        ["digits", "softmax", "steps~4", *tuned("digits", "softmax"), "seed~13"],
        ["digits", "nystrom", "steps~4", *tuned("digits", "nystrom"), "seed~13"],
        [*WORDS, *tuned("recall", "softmax"), "seed~13"],
    ]


def tuned(task, word):
    """Return the words of a link for a variant's recorded rate; none if it is the usual one."""
    rate = rates.rate(training_run(task, word).model)
    return [] if rate == rates.DEFAULT else [f"rate~{rate}"]


def choose(at, title, value):
    next(each for each in at.selectbox if each.label == title).select(value).run()


def test_a_stopped_training_is_continued_on_request(trainings):
    words = [*WORDS, "seed~12"]
    stopped = runs.Run(hash((trained_form.task_of(run_from_words(words)),)), is_running=False)
    at = open_page("matrices", {**LINK, "trained": words}, **{f"{trained_form.KEY}.run": stopped})
    assert not trainings
    assert "Training a small model first: **Associative recall with Softmax, 4 steps**." in spoken(at)
    at.button(key=f"{trained_form.KEY}.switch").click().run()
    assert trainings == [words]
    assert "softmax" in board(at, BOARD)[1]


def test_a_value_is_allowed_if_it_is_a_run_within_the_limits_of_the_profile(monkeypatch):
    spec = training_run("recall", steps=HOSTED.learn_steps + 1)
    for profile, is_allowed in (("own", True), ("hosted", False)):
        monkeypatch.setenv("ATTENTION_LAB_PROFILE", profile)
        assert is_run_allowed(spec) == is_allowed
    assert not is_run_allowed("recall")
