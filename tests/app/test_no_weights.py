"""Tests of a server without model weights: synthetic input works, and a message lists the packages to install."""

import os
from pathlib import Path

import pytest
from driver import visit

from app.jobs import cached, dispatch
from app.jobs.executors import WorkerExecutor
from app.jobs.scheduler import FairScheduler
from app.page import discover
from app.state.session import write_text
from attention_core.errors import ModelError
from attention_core.experiments import entropy_length
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, models
from attention_core.inputs.models import minilm, smollm2
from attention_core.inputs.models.files import PACKAGES

SMALL = {"input": "synthetic", "n": "24", "d": "4", "heads": "2"}
WRONG = "ended unexpectedly"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Hide the weights behind empty packages, for this process and the processes it starts."""
    folder = tmp_path_factory.mktemp("no_weights")
    for weights in (minilm.WEIGHTS, smollm2.WEIGHTS):
        (folder / weights.package).mkdir()
        (folder / weights.package / "__init__.py").touch()
    # Workers run only while a processor is idle. If other tests use both cores, this would take minutes, so workers get
    # the normal priority here.
    (folder / "sitecustomize.py").write_text("import os\n\nos.sched_setscheduler = lambda *_: None\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.syspath_prepend(folder)
        patch.setattr(models, "_built_in", models._built_in.__wrapped__)
        patch.chdir(Path(__file__).parents[2])
        yield


@pytest.fixture(scope="module")
def workers(environment):
    found = WorkerExecutor(1)
    found.start()
    yield found
    found._process.kill()


@pytest.fixture
def in_workers(workers, monkeypatch):
    line = FairScheduler(workers)
    monkeypatch.setattr(dispatch, "_rows", cached.cache())
    monkeypatch.setattr(dispatch, "executor", lambda task: workers)
    monkeypatch.setattr(dispatch, "scheduler_for", lambda executor: line)


def messages(at):
    return " ".join(each.value for each in (*at.info, *at.error, *at.warning, *at.markdown))


def test_an_empty_address_opens_a_text_if_weights_are_installed():
    assert visit("matrices").session_state["input"] == "text"


def test_a_worker_without_weights_computes_and_names_missing_packages(workers):
    line, source = FairScheduler(workers), SyntheticSource(SyntheticSpec(n=24, d=4, heads=2))
    [task] = entropy_length.tasks(source, ("softmax",), longest=24)[:1]
    ticket = line.submit("one", "entropy_length", task, object())
    assert ticket.wait(120)
    assert ticket.rows()
    [task] = entropy_length.tasks(TextSource("weights are missing"), ("softmax",), longest=3)[:1]
    ticket = line.submit("one", "entropy_length", task, object())
    assert ticket.wait(60)
    with pytest.raises(ModelError, match=f"pip install --no-deps {PACKAGES}"):
        ticket.rows()


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("error", {"against": "budget"}),
        ("entropy", {"h_longest": "24", "h_seeds": "2"}),
        ("claims", {}),
        ("causal", {"view": "leak"}),
        ("causal", {"view": "cache"}),
    ],
)
def test_pages_compute_synthetic_input_in_workers(in_workers, page, options):
    at = visit(page, SMALL | options)
    assert WRONG not in messages(at)
    assert "not installed" not in messages(at)


@pytest.mark.parametrize("page", discover())
def test_an_empty_address_opens_synthetic_input(environment, page):
    at = visit(page)
    assert at.session_state["input"] == "synthetic"
    if page == "matrices":
        assert "not installed" not in messages(at)
    if page == "home":
        assert PACKAGES.replace("_", "\\_") in messages(at)


def test_an_address_with_a_text_says_what_to_install(environment):
    at = visit("matrices", {"text": write_text("nobody has read this")})
    assert at.session_state["input"] == "text"
    assert [error.value for error in at.error] != []
    assert f"pip install --no-deps {PACKAGES}" in at.error[0].value


def test_the_packages_named_on_screen_are_those_that_are_pinned():
    lines = (Path(__file__).parents[2] / "requirements-models.txt").read_text().splitlines()
    assert [line.split(" ")[0] for line in lines if line and not line.startswith("#")] == PACKAGES.split()
