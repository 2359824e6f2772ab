"""Tests of the lock for heavy computations: timed work runs alone, and visitors take fair turns."""

import threading
import time
from contextlib import contextmanager

import pytest
from threads import join, started, until

from app.jobs import cached, dispatch, fair_lock
from app.jobs.fair_lock import FairLock
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments import timing_length


def test_timed_samples_and_heavy_work_wait_for_each_other():
    gate, log, late = FairLock(2), [], []
    inside, go = threading.Event(), threading.Event()

    def heavy():
        with gate.acquired():
            inside.set()
            go.wait(5)
            log.append("heavy ends")

    def timed():
        with gate.exclusive():
            log.append("sample")
            late.append(started(after))
            time.sleep(0.2)
            log.append("sample ends")

    def after():
        with gate.acquired():
            log.append("late")

    first = started(heavy)
    inside.wait(5)
    second = started(timed)
    time.sleep(0.1)
    assert log == []
    go.set()
    join(first, second)
    join(*late)
    assert log == ["heavy ends", "sample", "sample ends", "late"]


class SlowSemaphore:
    """A semaphore whose places are slow to acquire, so that other threads can act between two acquisitions."""

    def __init__(self, count):
        self.places = threading.BoundedSemaphore(count)

    @contextmanager
    def acquired(self, due_time):
        with self.places:
            time.sleep(0.02)
            yield


def test_a_sweep_does_not_block_another_visitor_until_its_end():
    gate, order, begun = FairLock(1), [], threading.Event()

    def sweep():
        for i in range(20):
            with gate.acquired():
                begun.set()
                until(lambda: "other" in order or gate._semaphore._waiting)
                order.append(i)

    def other():
        with gate.acquired():
            order.append("other")

    first = started(sweep)
    begun.wait(5)
    join(first, started(other))
    assert order == [0, "other", *range(1, 20)]


def test_two_concurrent_timings_do_not_deadlock():
    gate, done = FairLock(2), []
    gate._semaphore = SlowSemaphore(2)

    def timed():
        with gate.exclusive():
            done.append(1)

    join(*(started(timed) for _ in range(3)))
    assert len(done) == 3


def test_heavy_work_runs_between_two_samples(monkeypatch):
    order, others = [], []

    def work():
        with cached.compute_lock().acquired():
            order.append("work")

    def sample(task, *, load):
        if task.round == 1:
            others.append(started(work))
            until(lambda: cached.compute_lock()._semaphore._waiting)
        order.append(task.round)
        return ({},)

    monkeypatch.setattr(timing_length, "run", sample)
    spec = TimingSpec(variants=("softmax",), sizes=(8,))
    tasks = [timing_length.SampleTask(spec=spec, variant="softmax", n=8, round=i) for i in range(30)]
    for _task, _rows in dispatch.run_ready("timing_length", lambda: tasks[:1]):
        tasks.pop(0)
    join(*others)
    assert order == [0, 1, "work", *range(2, 30)]


def test_a_timed_sample_does_not_release_its_places():
    gate, order = FairLock(2), []

    def work():
        with gate.acquired():
            order.append("work")

    with gate.exclusive(), gate.released():
        waiting = started(work)
        until(lambda: gate._semaphore._waiting)
        order.append("sample")
    join(waiting)
    assert order == ["sample", "work"]


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

    drawing = started(draw)
    assert out.wait(5)
    with gate.acquired():
        others = [started(begin) for _ in range(2)]
        until(lambda: len(gate._semaphore._waiting) == 2)
        come_back.set()
        until(lambda: len(gate._semaphore._waiting) == 3)
    join(drawing, *others)
    assert log == ["came back", "began", "began"]


def order_of_service(requests):
    """Return the order of visitors who request the only place, half a second apart, while it is taken.

    Args:
        requests: visitors in the order of their requests, each with the seconds they have just used.
    """
    now, order, go = [1000.0], [], threading.Event()
    one = FairLock(1, lambda: now[0])

    def hold():
        with one.acquired():
            go.wait(5)

    def ask(visitor):
        with one.acquired(visitor):
            order.append(visitor)

    for visitor, seconds in requests:
        with one.acquired(visitor):
            now[0] += seconds
    threads = [started(hold)]
    for waiting, (visitor, _) in enumerate(requests):
        until(lambda: one._semaphore._free == 0 and len(one._semaphore._waiting) == waiting)  # noqa: B023
        now[0] += 0.5
        threads.append(started(ask, visitor))
    until(lambda: len(one._semaphore._waiting) == len(requests))
    go.set()
    join(*threads)
    return order


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ([("a", 0), ("b", 0), ("c", 0)], "abc"),
        ([("a", fair_lock.BURST_SECONDS), ("b", 0), ("c", 0)], "abc"),  # Little use does not delay a visitor.
        ([("sweep", 1), ("b", 0), ("c", 0)], ["b", "c", "sweep"]),
        ([("sweep", 60), *((each, 0) for each in "bcdefgh")], [*"bcde", "sweep", *"fgh"]),  # The delay is 3 s at most.
        ([("sweep", 60), ("other", 60)], ["sweep", "other"]),
    ],
)
def test_a_visitor_with_high_use_waits_for_others_but_not_long(asked, order):
    assert order_of_service(asked) == list(order)


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

    first = started(sweep)
    assert out.wait(5)
    with one.acquired():
        back.set()
        until(lambda: len(one._semaphore._waiting) == 1)
        second = started(move)
        until(lambda: len(one._semaphore._waiting) == 2)
    join(first, second)
    assert order == ["student", "sweep"]


def order_of_drawings(first, then, seconds):
    """Return the order of drawings when one visitor draws three things and another arrives after the first.

    Args:
        first: the visitor who draws three things, and the seconds they have just used.
        then: the visitor who arrives, and the seconds they have just used.
        seconds: duration of each drawing.
    """
    now, order, arrival = [1000.0], [], threading.Event()
    one = FairLock(1, lambda: now[0])

    def draw(visitor, count):
        with one.acquired(visitor):
            for i in range(count):
                now[0] += seconds
                order.append(visitor)
                if count > 1 and i == 0:
                    arrival.set()
                    until(lambda: one._semaphore._waiting)
                one.yield_turn()

    for visitor, spent in (first, then):
        with one.acquired(visitor):
            now[0] += spent
    now[0] += 0.5
    drawing = started(draw, first[0], 3)
    assert arrival.wait(5)
    now[0] += 0.01
    join(drawing, started(draw, then[0], 1))
    return order


@pytest.mark.parametrize(
    ("first", "then", "seconds", "order"),
    [
        (("sweep", 5), ("b", 0), 0.05, ["sweep", "b", "sweep", "sweep"]),
        (("a", 0), ("b", 0), 0.05, "aaab"),  # A visitor with little use draws a page to its end.
        (("a", 0), ("b", 0), 0.5, "abaa"),  # A longer drawing lets others go first.
        (("sweep", 5), ("other sweep", 5), 0.05, ["sweep"] * 3 + ["other sweep"]),
        (("sweep", 5), ("other sweep", 20), 0.05, ["sweep"] * 3 + ["other sweep"]),
    ],
)
def test_only_a_visitor_with_high_use_gives_way_between_drawings(first, then, seconds, order):
    assert order_of_drawings(first, then, seconds) == list(order)


def test_a_thread_without_a_place_does_not_yield():
    gate = FairLock(1)
    gate.yield_turn()
    with gate.exclusive():
        gate.yield_turn()
    assert gate._semaphore._free == 1
