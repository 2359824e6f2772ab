"""Tests of progress and cancellation: a task reports its steps, and a cancelled task computes no further layer."""

import threading

import pytest

from attention_core.experiments import continuation, swap
from attention_core.inputs import TextSource, models
from attention_core.inputs.models import recorder
from attention_core.model_patching import swap as surgery
from attention_core.runtime import progress
from attention_core.runtime.execution import Records

TEXT = "The cat sat on the mat, and the cat slept."


@pytest.fixture
def layers(monkeypatch):
    """Return the list of layers that have attended so far, with the model's attention or a replacement."""
    seen, exact, other = [], recorder.sdpa_attention_forward, surgery._Swap.__call__

    def attend(module, *rest, **more):
        seen.append(module)
        return exact(module, *rest, **more)

    def instead(self, module, *rest):
        seen.extend([module] * (module in self.replacements))
        return other(self, module, *rest)

    monkeypatch.setattr(recorder, "sdpa_attention_forward", attend)
    monkeypatch.setattr(surgery._Swap, "__call__", instead)
    # The call runs two tokens through the model once, to find its layers.
    surgery.attention_layers(models.load("smollm2").model)
    seen.clear()
    return seen


def test_steps_outside_a_watched_block_do_nothing():
    progress.check()
    progress.step(1, 2)


def test_watcher_receives_steps_until_the_block_ends():
    messages = []
    with progress.watched(lambda *at: messages.append(at)):
        progress.step(1, 3)
        with progress.unwatched():
            progress.step(2, 3)
        progress.step(3, 3)
    progress.step(4, 3)
    assert messages == [(1, 3), (3, 3)]


def test_generation_reports_every_token():
    messages = []
    with progress.watched(lambda *at: messages.append(at)):
        continuation.run(continuation.ContinuationTask(text=TEXT, steps=3))
    assert messages == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("after", [1, 4, 31, 40])
@pytest.mark.parametrize("word", ["softmax", "local~window~3"])
@pytest.mark.parametrize(
    "made",
    [
        lambda **how: continuation.ContinuationTask(text=TEXT, steps=3, **how),
        lambda **how: swap.ReadingTask(text=TEXT, live=True, **how),
        lambda **how: swap.CopyTask(period=9, live=True, **how),
    ],
    ids=["writing", "reading", "copying"],
)
def test_no_layer_runs_after_a_stop_request(layers, made, word, after):
    task = made(word=word, layers=tuple(range(30)))
    run = continuation.run if isinstance(task, continuation.ContinuationTask) else swap.run
    most = 90 if run is continuation.run else 30
    with progress.watched(lambda *at: None, lambda: len(layers) >= after):
        if after <= most - 1:
            with pytest.raises(progress.StoppedError):
                run(task)
        else:
            run(task)
    assert len(layers) == min(after, most)


def test_model_is_unchanged_after_a_stop(layers):
    task = swap.ReadingTask(text=TEXT, live=True)
    before = swap.compute(task).perplexity
    layers.clear()
    with progress.watched(lambda *at: None, lambda: len(layers) >= 7), pytest.raises(progress.StoppedError):
        swap.compute(swap.ReadingTask(text=TEXT, word="uniform", layers=tuple(range(30)), live=True))
    assert swap.compute(task).perplexity == before


def test_another_thread_is_not_stopped():
    found = []

    def read():
        found.extend(swap.run(swap.ReadingTask(text=TEXT, live=True)))

    with progress.watched(lambda *at: None, lambda: True):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        with pytest.raises(progress.StoppedError):
            read()
    assert len(found) == 1


def test_shared_record_is_read_completely_despite_a_stop():
    with progress.watched(lambda *at: None, lambda: True):
        assert Records().load(TextSource(TEXT, "smollm2", 1)).n > 5
