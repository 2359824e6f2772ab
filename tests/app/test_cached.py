"""Tests of the caches that visitors share: their keys, their limits in bytes, and concurrent requests."""

import gc
import pickle
import sys
import threading
import tracemalloc
import weakref
from concurrent.futures import Future
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import torch
from threads import join, started, until

import attention_core as ac
from app.jobs import cached, dispatch
from app.jobs.fair_lock import FairLock
from app.state import presets
from app.state.session import first_variants
from attention_core import limits
from attention_core.analysis.matrix import informative_query
from attention_core.analysis.matrix.compare import compare
from attention_core.experiments import entropy_length
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource
from attention_core.inputs.models import recorder
from attention_core.limits import current
from attention_core.runtime import cache, execution
from attention_core.runtime.cache import Frozen

SOURCE = SyntheticSource(SyntheticSpec(n=12, d=4, heads=2))


def test_each_analysis_has_its_own_cache():
    linear = ac.get("linear")
    weights = cached.causal_weights(SOURCE, linear, head=0)
    found = cached.inside(SOURCE, linear, 0, True)
    assert weights.shape == found.weights.shape == (12, 12)


def test_different_arguments_are_computed_separately_and_equal_ones_once(monkeypatch):
    def weights(source=SOURCE, head=0, **settings):
        return cached.causal_weights(source, ac.get("retention", **settings), head=head)

    answers = [weights(decay=0.5), weights(decay=0.9), weights(head=1, decay=0.5), weights(head=None, decay=0.5)]
    answers.append(weights(SyntheticSource(SyntheticSpec(n=12, d=4, heads=2, seed=1)), decay=0.5))
    assert len({answer.tobytes() for answer in answers}) == len(answers)
    monkeypatch.setattr(cached.records(), "load", lambda source: pytest.fail("computed again"))
    np.testing.assert_array_equal(weights(decay=0.5), answers[0])


@pytest.mark.parametrize("places", [1, 2])
def test_reading_a_record_under_the_lock_does_not_deadlock(places, monkeypatch):
    gate, log = FairLock(places), []
    monkeypatch.setattr(cached, "compute_lock", lambda: gate)

    def compute(seed):
        with gate.exclusive():
            source = SyntheticSource(SyntheticSpec(n=8, d=4, heads=1, seed=seed))
            cached.record(source)
            cached.causal_weights(source, ac.get("softmax"), head=0)
            log.append(seed)

    join(*(started(compute, 20_260_401 + i % 2) for i in range(4)))
    assert len(log) == 4
    with gate.exclusive(), gate.acquired():
        pass


def test_cached_results_are_shared_without_waiting_and_are_read_only(monkeypatch):
    made = []
    freeze = Frozen.__init__
    monkeypatch.setattr(Frozen, "__init__", lambda self, value: made.append(value) or freeze(self, value))
    source = SyntheticSource(SyntheticSpec(n=12, d=4, heads=2, seed=301))
    view = cached.MatrixView(source=source, head=None, causal=False, special=True)
    softmax, local = ac.get("softmax"), ac.get("local")
    drawing = FairLock(1)
    monkeypatch.setattr(cached, "page_lock", lambda: drawing)

    def look():
        return [
            cached.matrix(view, softmax),
            cached.pattern(source, local, head=0, causal=False),
            cached.reach(view, (local, softmax), 3),
            cached.head_miniatures(source, False),
        ]

    first = look()
    looked = len(made)
    assert looked
    monkeypatch.setattr(drawing, "released", lambda: pytest.fail("nobody waits for what is there"))
    with drawing.acquired():
        assert all(one is other for one, other in zip(first, look(), strict=True))
    assert len(made) == looked
    compared, pattern, reach, pictures = first
    for array in (compared.weights, compared.difference, *pattern.primitives.values(), reach.first, pictures):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_equal_numbers_and_switches_have_different_keys():
    assert len({cached._key((0,)), cached._key((False,)), cached._key((0.0,)), cached._key((None,))}) == 4


def test_results_are_evicted_beyond_the_limit_of_bytes_or_entries():
    made = []

    def ask(cache, *words):
        for word in words:
            cache.get(word, lambda word=word: made.append(word) or word)
        return [made.pop(0) for _ in range(len(made))]

    few = cache.ByteLRUCache(5999, lambda word: 1000 * len(word) - cache.ENTRY - sys.getsizeof(word))
    assert ask(few, "aaa", "bb", "aaa") == ["aaa", "bb"]
    assert ask(few, "c", "aaa", "bb") == ["c", "bb"]  # "aaa" was the least recently used entry.
    assert ask(few, "much more", "much more") == ["much more"]
    assert ask(few, "aaa", "much more") == ["aaa", "much more"]
    few.drop("much more")
    assert ask(few, "aaa", "bb", "much more") == ["aaa", "bb", "much more"]
    two = cache.ByteLRUCache(10_000, len, most=2)
    assert ask(two, "a", "b", "c", "b", "a") == ["a", "b", "c", "a"]


def test_a_cache_counts_the_bytes_of_its_entries():
    task = entropy_length.tasks(SyntheticSource(SyntheticSpec(heads=4)), ["softmax"], longest=16)[0]
    rows = execution.execute_here("entropy_length", task)
    results = [rows, (np.ones((40, 50)), np.ones(3, np.float32)[:2]), {"word": ("some text", 1.5)}]
    for made in results:
        for _ in range(2):  # In the second pass, Python reuses tuples that the first pass has freed.
            tidy, sent = cache.ByteLRUCache(2**40, lambda found: found.nbytes), pickle.dumps(made)
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for i in range(1000, 1200):
                tidy.get(("entropy", str(i).encode()), lambda sent=sent: cache.Frozen(pickle.loads(sent)))
            gc.collect()
            taken = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
        assert 0.75 < tidy.held / taken < 1.8, "of a small entry a good part is shared with others"


def test_a_long_text_has_a_short_key():
    one, other = (TextSource(text="so long " * 500 + end) for end in "ab")
    assert cache.digest(one) == cache.digest(TextSource(text=one.text)) != cache.digest(other)
    assert len(cache.digest(one)) == 16
    assert cache.digest(TextSource(text="\ud800"))


def test_a_result_removed_during_its_computation_is_not_cached():
    few = cache.ByteLRUCache(2**20, len)
    assert few.get("word", lambda: few.drop("word") or "old") == "old"
    assert few.known("word") is None
    assert few.get("word", lambda: "new") == "new" == few.known("word")
    few.drop("word")
    assert few.held == 0


def test_a_result_that_cannot_be_measured_does_not_block_its_key():
    few = cache.ByteLRUCache(2**20, len)
    with pytest.raises(TypeError):
        few.get("word", lambda: 3)
    found = []
    join(started(lambda: found.append(few.get("word", lambda: "new"))))
    assert found == ["new"]


def test_the_caches_together_hold_at_most_cached_bytes(monkeypatch):
    assert len(cached._caches) > 10
    shared = sum(cache.most_bytes for cache in (*cached._caches, cached.records().cache))
    assert shared <= current().cached_bytes
    resources = {
        name for module in (cached, dispatch) for name, each in vars(module).items() if hasattr(each, "instances")
    }
    bounded_otherwise = {
        "compute_lock",
        "page_lock",
        "uploads",
        "records",
        "scheduler_for",
        "workers",
        "_cluster",
        "_this_process",
    }
    assert resources == bounded_otherwise  # Each of them either holds no results or limits its own size.


def test_the_rows_of_a_class_fit_twice_into_the_cache():
    source = TextSource(presets.texts()["story"], "minilm")
    tasks = entropy_length.tasks(source, [attention.key for attention in first_variants()], longest=256)
    one_head = sum(Frozen(execution.execute_here("entropy_length", task)).nbytes for task in tasks)
    heads = execution.Records(2**30).load(source).heads * source.layer_count
    pages = 2  # This counts the Entropy page, and the three other pages as one: together they need at most as much.
    assert heads == 72
    assert 2 * pages * heads * one_head < limits.HOSTED.cached_bytes * dispatch.ROWS_CACHE_PARTS // cached.CACHE_PARTS


def test_long_inputs_release_the_page_lock_and_short_inputs_do_not_queue_again(monkeypatch):
    drawing, stepped = FairLock(1), []
    monkeypatch.setattr(cached, "page_lock", lambda: drawing)
    away = drawing.released
    monkeypatch.setattr(drawing, "released", lambda: stepped.append(1) or away())
    few, many = (
        SyntheticSource(SyntheticSpec(n=n, d=4, heads=1, seed=9))
        for n in (cached.SHORT_INPUT_TOKENS, cached.SHORT_INPUT_TOKENS + 1)
    )
    with drawing.acquired():
        for source in (few, many):
            cached.record(source)  # This caches the record, so that only the analysis below takes a turn.
        assert len(stepped) == 2
        cached.causal_weights(few, ac.get("softmax"), head=0)
        assert len(stepped) == 2
        cached.causal_weights(many, ac.get("softmax"), head=0)
        assert len(stepped) == 3


def test_a_page_with_many_long_inputs_waits_for_others_once(monkeypatch):
    gate, drawing, order = FairLock(1), FairLock(2), []
    monkeypatch.setattr(cached, "compute_lock", lambda: gate)
    monkeypatch.setattr(cached, "page_lock", lambda: drawing)
    begun, go_on = threading.Event(), threading.Event()

    def draw(name):
        with drawing.acquired():
            begun.set()
            assert name != "first" or go_on.wait(10)  # The first page draws other parts before its analysis.
            with cached._compute_turn(cached.SHORT_INPUT_TOKENS + 1):
                order.append(name)

    with gate.acquired():
        first = started(draw, "first")
        assert begun.wait(10)
        second = started(draw, "second")
        until(lambda: len(gate._semaphore._waiting) == 1)
        go_on.set()
        until(lambda: len(gate._semaphore._waiting) == 2)
    join(first, second)
    assert order == ["first", "second"]


def test_a_refusal_frees_the_results_computed_before_it():
    """Check that a refusal frees the results before it, at every rerun: 300 MB in a class before this was fixed."""
    source = SyntheticSource(SyntheticSpec(n=24, seed=77))
    view = cached.MatrixView(source=source, head=0, causal=True, special=True)

    class Held:
        """A stand-in for the results that a page has computed so far."""

    def page() -> weakref.ref[Held]:
        held = Held()
        with pytest.raises(ac.errors.NotCausalError):
            cached.matrix(view, ac.get("linformer"))
        return weakref.ref(held)

    gc.collect()
    gc.disable()
    try:
        assert page()() is None
    finally:
        gc.enable()


def test_two_pages_that_request_the_same_result_do_not_deadlock():
    source, found = SyntheticSource(SyntheticSpec(n=cached.SHORT_INPUT_TOKENS + 2, d=4, heads=1, seed=10)), []

    def draw():
        with cached.page_lock().acquired():
            found.append(cached.causal_weights(source, ac.get("softmax"), head=0))

    join(*(started(draw) for _ in range(6)))
    assert len(found) == 6


def test_a_model_reads_a_text_once_for_all_layers_and_thumbnails(monkeypatch):
    passes = []
    read = recorder.record
    monkeypatch.setattr(recorder, "record", lambda *args: passes.append(args) or read(*args))
    source = TextSource("A text that nobody else has asked for.")
    shown = [cached.record(source.at_layer(layer)) for layer in (2, 0, 5)]
    pictures = [cached.head_miniatures(source.at_layer(0), causal, special) for causal in (0, 1) for special in (0, 1)]
    assert len(cached.head_scores(source.at_layer(0), False, True)) == 12 * len(pictures[0]) == 12 * 6
    assert len(passes) == 1
    for layer, record in zip((2, 0, 5), shown, strict=True):
        assert torch.equal(record.k, source.at_layer(layer).load().k)


def test_records_are_evicted_beyond_the_limit_of_bytes(monkeypatch):
    loads = []
    load = SyntheticSource.load
    monkeypatch.setattr(SyntheticSource, "load", lambda self, tokens=None: loads.append(self) or load(self, tokens))
    sources = [SyntheticSource(SyntheticSpec(n=16, d=8, heads=2, seed=seed)) for seed in (71, 72, 73)]
    records = execution.Records(2 * sum(x.nbytes for x in load(sources[0]).tensors))
    for source in (*sources, sources[2], sources[0]):
        records.load(source)
    assert loads == [*sources, sources[0]]


def test_a_record_is_read_once_for_all_threads_and_again_after_an_error(monkeypatch):
    loads, waiting, found = [], threading.Semaphore(0), []

    class Watched(Future):
        def result(self, timeout=None):
            waiting.release()
            return super().result(timeout)

    def load(self, tokens=None):
        loads.append(self)
        assert waiting.acquire(timeout=10)  # Two other threads wait for the same record now.
        assert waiting.acquire(timeout=10)
        raise ac.errors.InputError("No.")

    def ask():
        try:
            records.load(SOURCE)
        except ac.LabError as error:
            found.append(str(error))

    with monkeypatch.context() as patch:
        patch.setattr(cache, "Future", Watched)
        patch.setattr(SyntheticSource, "load", load)
        records = execution.Records()
        join(*(started(ask) for _ in range(3)))
    assert found == ["No."] * 3
    assert len(loads) == 1
    assert records.load(SOURCE).n == SOURCE.spec.n


def test_a_spinner_is_shown_only_if_a_result_is_not_cached(monkeypatch):
    texts = []

    @contextmanager
    def spinner(words, *, show_time):
        texts.append(words)
        yield
        texts.append("over")

    monkeypatch.setattr(cached.st, "spinner", spinner)
    source = SyntheticSource(SyntheticSpec(n=9, d=4, heads=1, seed=20_261_123))
    for _ in range(2):
        with cached.spinner("first"):
            for variant in ("softmax", "linear"):
                cached.causal_weights(source, ac.get(variant), head=0)
            texts.append("there")
    assert texts == ["first", "there", "over", "there"]
    texts.clear()
    with cached.spinner("around"), suppress(ac.LabError):
        with cached.spinner("within"):
            cached.causal_weights(source, ac.get("cosine"), head=0)
        cached.causal_weights(source, ac.get("efficient"), head=0)
        raise ac.LabError("over")
    assert texts == ["within", "over", "around", "over"]
    cached.causal_weights(source, ac.get("performer"), head=0)  # Outside a spinner's block, nothing is shown.
    assert len(texts) == 4


@pytest.mark.parametrize(
    ("model", "positions", "special", "same"),
    [
        ("smollm2", "rope", False, True),  # SmolLM2 itself uses RoPE, and its tokenizer adds no special tokens.
        ("smollm2", "own", True, True),
        ("smollm2", "none", False, False),
        ("smollm2", "alibi", False, False),
        ("minilm", "none", False, True),
        ("minilm", "rope", False, False),
        ("minilm", "own", True, False),
    ],
)
def test_equivalent_views_are_computed_once(model, positions, special, same):
    def results_of(positions, special):
        source = TextSource("the cat saw the dog", model, 1, positions=positions)
        view = cached.MatrixView(source=source, head=1, causal=True, special=special)
        softmax = ac.get("softmax")
        first = source.at_layer(0)
        return (
            cached.matrix(view, softmax),
            cached.ranks(view, softmax),
            cached.head_miniatures(first, True, special),
            cached.head_scores(first, True, special),
        )

    own, other = results_of("own", False), results_of(positions, special)
    assert [a is b for a, b in zip(own, other, strict=True)] == [same] * 4
    if same:
        qkv = TextSource("the cat saw the dog", model, 1, positions=positions).load()
        fresh = compare(qkv, ac.get("softmax"), head=1, causal=True, special=special)
        np.testing.assert_array_equal(other[0].weights, fresh.weights)


def test_thumbnails_and_the_informative_row_depend_on_mask_and_head():
    source = SyntheticSource(SyntheticSpec(n=24, d=4, heads=3, seed=2))
    softmax = ac.get("softmax")
    both = [cached.head_miniatures(source, causal, size=6) for causal in (False, True)]
    assert not np.array_equal(*both)
    np.testing.assert_array_equal(cached.head_miniatures(source, False, size=6), both[0])
    found = {
        (head, causal): cached.informative_query(
            cached.MatrixView(source=source, head=head, causal=causal, special=True), softmax
        )
        for head in (0, 1, 2, None)
        for causal in (False, True)
    }
    for (head, causal), row in found.items():
        weights = compare(source.load(), softmax, head=head, causal=causal).weights
        assert row == informative_query.informative_query_of_record(weights, source.load(), special=True)
    assert len({*found.values()}) > 2, "heads and masks differ in the row that tells the most"
