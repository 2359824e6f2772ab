"""Tests of the lock that separates timed work from other heavy work and takes visitors in turn."""

import threading
import time
from contextlib import contextmanager

import pytest

from app.jobs import cached, dispatch, fair_lock
from app.jobs.fair_lock import FairLock
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments import timing_length


def test_timed_samples_and_heavy_work_wait_for_each_other():
    gate, log = FairLock(2), []
    inside, go = threading.Event(), threading.Event()

    def heavy():
        with gate.acquired():
            inside.set()
            go.wait(5)
            log.append("heavy ends")

    def timed():
        with gate.exclusive():
            log.append("sample")
            late.start()
            time.sleep(0.2)
            log.append("sample ends")

    def after():
        with gate.acquired():
            log.append("late")

    late = threading.Thread(target=after)
    first, second = threading.Thread(target=heavy), threading.Thread(target=timed)
    first.start()
    inside.wait(5)
    second.start()
    time.sleep(0.1)
    assert log == []
    go.set()
    for thread in (first, second, late):
        thread.join(5)
    assert log == ["heavy ends", "sample", "sample ends", "late"]


class SlowPlaces:
    """Places of a lock that are slow to acquire, so that other threads can act between two acquisitions."""

    def __init__(self, count):
        self.places = threading.BoundedSemaphore(count)

    @contextmanager
    def taken(self, due):
        with self.places:
            time.sleep(0.02)
            yield


def test_a_sweep_does_not_block_another_visitor_until_its_end():
    gate, order, started = FairLock(1), [], threading.Event()

    def sweep():
        for i in range(20):
            with gate.acquired():
                started.set()
                time.sleep(0.02)
                order.append(i)

    def other():
        with gate.acquired():
            order.append("other")

    threads = threading.Thread(target=sweep), threading.Thread(target=other)
    threads[0].start()
    started.wait(5)
    threads[1].start()
    for thread in threads:
        thread.join(10)
    assert order.index("other") <= 3


def test_two_concurrent_timings_do_not_deadlock():
    gate, done = FairLock(2), []
    gate._places = SlowPlaces(2)

    def timed():
        with gate.exclusive():
            done.append(1)

    threads = [threading.Thread(target=timed, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3)
    assert len(done) == 3


def test_heavy_work_runs_between_two_samples(monkeypatch):
    waits = []

    def work():
        begun = time.monotonic()
        with cached.compute_lock().acquired():
            waits.append(time.monotonic() - begun)

    other = threading.Thread(target=work)

    def sample(task, *, load):
        if task.round == 1:
            other.start()
        time.sleep(0.02)
        return ({},)

    monkeypatch.setattr(timing_length, "run", sample)
    spec = TimingSpec(variants=("softmax",), sizes=(8,))
    tasks = [timing_length.SampleTask(spec=spec, variant="softmax", n=8, round=i) for i in range(30)]
    for _task, _rows in dispatch.run_ready("timing_length", lambda: tasks[:1]):
        tasks.pop(0)
    other.join(5)
    assert waits[0] < 0.3  # waiting for all samples takes twice as long


def test_a_thread_that_released_its_place_returns_before_new_requests():
    gate, log, out, come_back = FairLock(1), [], threading.Event(), threading.Event()

    def draw():
        with gate.acquired():
            with gate.released():
                out.set()
                come_back.wait(5)
            log.append("came back")

    def begin():
        with gate.acquired():
            log.append("began")

    drawing, others = threading.Thread(target=draw), [threading.Thread(target=begin) for _ in range(2)]
    drawing.start()
    assert out.wait(5)
    with gate.acquired():
        for other in others:
            other.start()
        wait_for(lambda: len(gate._places._waiting) == 2)
        come_back.set()
        wait_for(lambda: len(gate._places._waiting) == 3)
    for thread in (drawing, *others):
        thread.join(5)
    assert log == ["came back", "began", "began"]


def wait_for(true):
    until = time.monotonic() + 5
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def served(asked):
    """Return the order of visitors who request the only place, half a second apart, while it is taken.

    Args:
        asked: visitors in the order of their requests, each with the seconds they have just used.
    """
    now, order, go = [1000.0], [], threading.Event()
    one = FairLock(1, lambda: now[0])

    def hold():
        with one.acquired():
            go.wait(5)

    def ask(visitor):
        with one.acquired(visitor):
            order.append(visitor)

    for visitor, seconds in asked:
        with one.acquired(visitor):
            now[0] += seconds
    threads = [threading.Thread(target=hold)]
    threads[0].start()
    for waiting, (visitor, _) in enumerate(asked):
        wait_for(lambda: one._places._free == 0 and len(one._places._waiting) == waiting)  # noqa: B023
        now[0] += 0.5
        threads.append(threading.Thread(target=ask, args=(visitor,)))
        threads[-1].start()
    wait_for(lambda: len(one._places._waiting) == len(asked))
    go.set()
    for thread in threads:
        thread.join(5)
    return order


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ([("a", 0), ("b", 0), ("c", 0)], "abc"),
        ([("a", fair_lock.BURST_SECONDS), ("b", 0), ("c", 0)], "abc"),  # one interaction, and one more
        ([("sweep", 1), ("b", 0), ("c", 0)], ["b", "c", "sweep"]),
        ([("sweep", 60), *((each, 0) for each in "bcdefgh")], [*"bcde", "sweep", *"fgh"]),  # three seconds at most
        ([("sweep", 60), ("other", 60)], ["sweep", "other"]),
    ],
)
def test_a_visitor_with_high_use_waits_for_others_but_not_long(asked, order):
    assert served(asked) == list(order)


def test_used_seconds_recover_with_time_and_the_account_is_then_deleted():
    now = [0.0]
    one = FairLock(1, lambda: now[0])
    with one.acquired("sweep"):
        now[0] += 60
    for i in range(fair_lock.MAX_ACCOUNTS + 1):
        with one.acquired(i):
            pass
    assert "sweep" in one._accounts
    now[0] += fair_lock.BURST_SECONDS / fair_lock.RECOVERY_RATE + fair_lock.MAX_DELAY
    for i in range(fair_lock.MAX_ACCOUNTS + 1):
        with one.acquired(i):
            pass
    assert "sweep" not in one._accounts
    assert len(one._accounts) <= fair_lock.MAX_ACCOUNTS


def test_a_long_run_lets_others_go_first_at_every_request(monkeypatch):
    now, order = [0.0], []
    one = FairLock(1, lambda: now[0])
    out, back = threading.Event(), threading.Event()

    def sweep():
        with one.acquired("sweep"):
            now[0] += 1
            with one.released():
                out.set()
                back.wait(5)
            order.append("sweep")

    def move():
        with one.acquired("student"):
            order.append("student")

    threads = threading.Thread(target=sweep), threading.Thread(target=move)
    threads[0].start()
    assert out.wait(5)
    with one.acquired():
        back.set()
        wait_for(lambda: len(one._places._waiting) == 1)
        threads[1].start()
        wait_for(lambda: len(one._places._waiting) == 2)
    for thread in threads:
        thread.join(5)
    assert order == ["student", "sweep"]


def drawn(first, then, seconds):
    """Return the order of drawings when one visitor draws three things and another arrives after the first.

    Args:
        first: the visitor who draws three things, and the seconds they have just used.
        then: the visitor who arrives, and the seconds they have just used.
        seconds: duration of each drawing.
    """
    now, order, came = [1000.0], [], threading.Event()
    one = FairLock(1, lambda: now[0])

    def draw(visitor, count):
        with one.acquired(visitor):
            for i in range(count):
                now[0] += seconds
                order.append(visitor)
                if count > 1 and i == 0:
                    came.set()
                    wait_for(lambda: one._places._waiting)
                one.give_way()

    for visitor, spent in (first, then):
        with one.acquired(visitor):
            now[0] += spent
    now[0] += 0.5
    threads = [threading.Thread(target=draw, args=(visitor, count)) for (visitor, _), count in ((first, 3), (then, 1))]
    threads[0].start()
    assert came.wait(5)
    now[0] += 0.01
    threads[1].start()
    for thread in threads:
        thread.join(5)
    return order


@pytest.mark.parametrize(
    ("first", "then", "seconds", "order"),
    [
        (("sweep", 5), ("b", 0), 0.05, ["sweep", "b", "sweep", "sweep"]),
        (("a", 0), ("b", 0), 0.05, "aaab"),  # a page alone is drawn to its end
        (("a", 0), ("b", 0), 0.5, "abaa"),  # unless it takes longer than a visitor may take
        (("sweep", 5), ("other sweep", 5), 0.05, ["sweep"] * 3 + ["other sweep"]),
        (("sweep", 5), ("other sweep", 20), 0.05, ["sweep"] * 3 + ["other sweep"]),
    ],
)
def test_only_a_visitor_with_high_use_gives_way_between_drawings(first, then, seconds, order):
    assert drawn(first, then, seconds) == list(order)


def test_a_thread_without_a_place_does_not_give_way():
    gate = FairLock(1)
    gate.give_way()
    with gate.exclusive():
        gate.give_way()
    assert gate._places._free == 1
