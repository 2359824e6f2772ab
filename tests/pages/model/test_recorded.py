"""Tests that recorded results equal computed results, and contain everything a first visit shows."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from driver import open_page

from app.jobs.scheduler import FairScheduler
from app.state import presets
from attention_core.experiments import continuation, swap
from attention_core.experiments.swap import CopyTask, OutputErrorTask, ReadingTask, run
from pages.model import reading, record

EVERYWHERE = tuple(range(30))


TASKS = {
    "a text": ReadingTask(text=presets.texts()["repeats"], word="sink~window~64~sinks~1", layers=EVERYWHERE),
    "a copy": CopyTask(word="local~window~64", layers=(18,)),
    "an error": OutputErrorTask(text=presets.texts()["long"], word="local~window~8", layers=EVERYWHERE),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_recorded_results_equal_computed_results(task, monkeypatch):
    monkeypatch.undo()
    [found], true = run(task), swap.compute(task)
    assert found.recorded
    for name in ("perplexity", "copied", "first", "output", "tokens"):
        if hasattr(true, name):
            assert getattr(found, name) == pytest.approx(getattr(true, name), rel=1e-3)


def test_all_results_of_a_first_visit_are_recorded(monkeypatch):
    monkeypatch.undo()
    lacking = [task for task in record.unique_tasks() if swap.recorded_row(task) is None]
    lacking += [task for task in record.continuations() if continuation.recorded_row(task) is None]
    assert not lacking, "run python -m pages.model.record"


def test_recorded_continuations_equal_computed_ones(monkeypatch):
    monkeypatch.undo()
    task = record.continuations()[1]
    [found], true = continuation.run(task), continuation.compute(task)
    assert found.recorded
    assert (found.word, found.layers, found.prompt, found.ids) == (true.word, true.layers, true.prompt, true.ids)
    assert (found.written, found.held) == (true.written, true.held)
    assert continuation.recorded_row(replace(task, steps=3)) is None
    assert continuation.recorded_row(replace(task, text="Another text.")) is None


@pytest.mark.parametrize(
    ("view", "how"),
    [
        ("text", {}),
        ("copying", {"m_text": "english"}),
        ("layers", {"m_text": "story", "m_edge": "top"}),
        ("layers", {"m_text": "chinese", "m_edge": "single"}),
        ("budget", {"m_text": "repeats"}),
        ("predicts", {"m_text": "chinese"}),
        ("continuation", {}),
        ("continuation", {"m_text": "chinese"}),
    ],
)
def test_a_first_visit_runs_no_task_on_any_text(view, how, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(FairScheduler, "submit", lambda *_: pytest.fail("asked for what was recorded"))
    at = open_page("model", m_view=view, **how)
    assert any("Recorded on" in c.value for c in at.caption)


def test_the_other_texts_are_those_with_recorded_numbers_that_the_mask_changes(monkeypatch):
    monkeypatch.undo()

    def ratios(word, text, layers=range(30)):
        return reading.other_ratios(SimpleNamespace(text=presets.texts()[text], layers=tuple(layers)), word)

    window = ratios("local~window~64", "long")
    assert len(window) == 2, "two texts are longer than the window"
    assert len(ratios("local~window~64", "story")) == 2
    assert len(ratios("local~window~64", "english")) == 3
    assert len(ratios("linear", "long")) == 4, "without a mask, all other texts count"
    assert ratios("local~window~64", "long", range(1, 3)) == [], "not recorded"
    assert 1 < min(window) < max(window)
