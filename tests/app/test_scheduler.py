"""Tests of the task queue: visitors take turns, equal tasks run once, and tasks that no visitor waits for are ended."""

import sys
import threading
import time
from collections import Counter
from itertools import count
from types import ModuleType

import pytest
from threads import until

from app.jobs import cached
from app.jobs import scheduler as scheduler_module
from app.jobs.executors import ThreadExecutor
from app.jobs.scheduler import FairScheduler, TaskStatus
from attention_core.runtime import progress as task_steps
from attention_core.runtime.progress import StoppedError


class Steps:
    """An executor whose tasks end when the test ends them."""

    max_in_flight = 1

    def __init__(self, slots=1):
        self.count, self.ran, self.ended, self.closed = slots, [], [], 0
        self.go = Counter()
        self.changed = threading.Condition()

    def slot_count(self):
        return self.count

    def new_slot(self):
        return Step(self)

    def finish(self, task):
        with self.changed:
            self.go[task] += 1
            self.changed.notify_all()


class Step:
    def __init__(self, steps):
        self.steps, self.stopped = steps, False

    def run(self, experiment, task, on_wait, on_step):
        steps = self.steps
        steps.ran.append(task)
        if str(task).startswith("held"):
            on_wait()
            on_step(2, 5)
        with steps.changed:
            assert steps.changed.wait_for(lambda: self.stopped or steps.go[task], 20)
            if self.stopped:
                self.stopped = False
                raise EOFError
            steps.go[task] -= 1
        if str(task).startswith("bad"):
            raise ValueError(task)
        return (task, "found")

    def end(self):
        with self.steps.changed:
            self.steps.ended.append(self.steps.ran[-1])
            self.stopped = True
            self.steps.changed.notify_all()
        return True

    def close(self):
        self.steps.closed += 1


@pytest.fixture
def steps():
    return Steps()


@pytest.fixture
def ask(steps):
    line = FairScheduler(steps)
    return lambda who, task: line.submit(who, "trial", task, task)


def test_visitors_take_turns_in_the_queue(steps, ask):
    tickets = [ask("first", "first 0")]
    until(lambda: steps.ran)
    tickets += [ask("first", f"first {i}") for i in range(1, 4)]
    tickets += [ask(who, f"{who} {i}") for who in ("second", "third") for i in range(2)]
    for _ in tickets:
        running = len(steps.ran)
        steps.finish(steps.ran[-1])
        until(lambda n=running: len(steps.ran) > n or all(ticket.wait(0) for ticket in tickets))
    assert steps.ran == [*("first 0", "first 1", "second 0", "third 0", "first 2", "second 1", "third 1", "first 3")]


def test_the_position_in_the_queue_counts_visitors_and_not_tasks(steps, ask):
    running = ask("first", "a")
    until(lambda: steps.ran)
    waiting = {who: [ask(who, f"{who} {i}") for i in range(3)] for who in ("second", "third")}
    assert running.status() == TaskStatus(ahead=None, is_blocked=False, timed=False)
    assert [ticket.status().ahead for ticket in waiting["second"]] == [0, 0, 0]
    assert [ticket.status().ahead for ticket in waiting["third"]] == [1, 1, 1]


def test_equal_tasks_run_once_and_survive_one_withdrawal(steps, ask):
    one, other = ask("one", "same"), ask("other", "same")
    until(lambda: steps.ran)
    one.withdraw()
    time.sleep(3 * scheduler_module.GRACE_SECONDS)
    steps.finish("same")
    assert other.wait(5)
    assert other.rows() == ("same", "found")
    assert (steps.ran, steps.ended) == (["same"], [])
    late = ask("late", "same")  # The result is still stored, because ``other`` has not been withdrawn.
    assert late.wait(5)
    for ticket in (other, late):
        ticket.withdraw()
    ask("later", "same")
    until(lambda: len(steps.ran) == 2)


def test_a_shared_task_takes_the_first_turn_of_either_visitor(steps, ask):
    ask("running", "a")
    until(lambda: steps.ran)
    ask("one", "b"), ask("other", "c")
    shared = ask("one", "same"), ask("other", "same")
    assert [ticket.status().ahead for ticket in shared] == [0, 0]
    for task in ("a", "b", "c", "same"):
        until(lambda task=task: steps.ran[-1] == task)
        steps.finish(task)
    assert all(ticket.wait(5) for ticket in shared)
    assert steps.ran == ["a", "b", "c", "same"]


def test_a_withdrawn_task_is_removed_or_ended_without_effect_on_others(steps, ask):
    running, dropped, kept = ask("one", "running"), ask("two", "dropped"), ask("three", "kept")
    until(lambda: steps.ran)
    dropped.withdraw()
    assert kept.status().ahead == 0
    running.withdraw()
    until(lambda: steps.ran == ["running", "kept"])
    assert steps.ended == ["running"]
    steps.finish("kept")
    assert kept.wait(5)
    assert steps.ran == ["running", "kept"]


def test_a_waiting_task_survives_one_withdrawal(steps, ask):
    ask("running", "a")
    until(lambda: steps.ran)
    one, other = ask("one", "same"), ask("other", "same")
    one.withdraw()
    third = ask("third", "same")
    assert [ticket.status().ahead for ticket in (other, third)] == [0, 0]
    for task in ("a", "same"):
        steps.finish(task)
    assert other.wait(5)
    assert third.wait(5)
    assert steps.ran == ["a", "same"]


def test_a_task_requested_again_immediately_is_still_running(steps, ask):
    first = ask("one", "same")
    until(lambda: steps.ran)
    first.withdraw()
    again = ask("one", "same")
    time.sleep(3 * scheduler_module.GRACE_SECONDS)
    steps.finish("same")
    assert again.wait(5)
    assert (steps.ran, steps.ended) == (["same"], [])


def test_a_failed_task_fails_for_all_visitors_and_can_run_again(steps, ask):
    both = ask("one", "bad"), ask("other", "bad")
    until(lambda: steps.ran)
    steps.finish("bad")
    for ticket in both:
        assert ticket.wait(5)
        with pytest.raises(ValueError, match="bad"):
            ticket.rows()
    ask("one", "bad")
    until(lambda: len(steps.ran) == 2)


def test_all_slots_run_tasks_and_an_idle_slot_is_closed(monkeypatch):
    monkeypatch.setattr(scheduler_module, "IDLE_SECONDS", 0.1)
    steps = Steps(2)
    line = FairScheduler(steps)
    tickets = [line.submit("one", "trial", i, i) for i in range(3)]
    until(lambda: len(steps.ran) == 2)
    time.sleep(0.05)
    assert len(steps.ran) == 2
    for i in range(3):
        steps.finish(i)
    assert all(ticket.wait(5) for ticket in tickets)
    until(lambda: steps.closed == 2)
    again = line.submit("one", "trial", 4, 4)
    steps.finish(4)
    assert again.wait(5)


def test_a_task_reports_that_it_waits_for_the_machine(steps, ask):
    ticket = ask("one", "held back")
    until(lambda: ticket.status().steps)
    assert ticket.status() == TaskStatus(ahead=None, is_blocked=True, timed=False, steps=(2, 5))


class Thread:
    """An executor thread whose tasks can only be asked to stop."""

    def __init__(self):
        self.ran, self.asked, self.go, self.stopped = [], threading.Event(), threading.Event(), 0

    def slot_count(self):
        return 1

    def new_slot(self):
        return self

    def run(self, experiment, task, on_wait, on_step):
        self.ran.append(task)
        assert self.go.wait(20)
        if self.asked.is_set():
            self.asked.clear()
            self.stopped += 1
            raise StoppedError
        return (task, "found")

    def end(self):
        self.asked.set()
        return False

    def close(self):
        pass


def test_a_stopped_task_is_removed():
    executor = Thread()
    line = FairScheduler(executor)
    ticket = line.submit("one", "trial", "a", "a")
    until(lambda: executor.ran)
    ticket.withdraw()
    until(executor.asked.is_set)
    executor.go.set()
    until(lambda: executor.stopped)
    again = line.submit("one", "trial", "a", "a")
    assert again.wait(5)
    assert again.rows() == ("a", "found")
    assert executor.ran == ["a", "a"]


def test_a_task_requested_while_it_stops_runs_again():
    executor = Thread()
    line = FairScheduler(executor)
    ticket = line.submit("one", "trial", "a", "a")
    until(lambda: executor.ran)
    ticket.withdraw()
    until(executor.asked.is_set)
    others = [line.submit(who, "trial", "a", "a") for who in ("other", "third")]
    executor.go.set()
    assert all(other.wait(5) for other in others)
    assert {other.rows() for other in others} == {("a", "found")}
    assert (executor.ran, executor.stopped) == (["a", "a"], 1)


def test_a_task_in_this_process_stops_at_its_next_step(monkeypatch):
    taken, ended = [], threading.Event()
    module = ModuleType("attention_core.experiments.endless")

    def run_endlessly(task, *, load):
        try:
            for i in count():
                task_steps.step(i, 1 + i)
                taken.append(i)
        finally:
            ended.set()

    module.run = run_endlessly
    monkeypatch.setitem(sys.modules, module.__name__, module)
    ticket = FairScheduler(ThreadExecutor(cached.compute_lock(), cached.record)).submit("one", "endless", "a", "a")
    until(lambda: taken)
    assert ticket.status().steps
    ticket.withdraw()
    assert ended.wait(20)
    assert taken == list(range(len(taken)))


def test_a_task_requested_twice_survives_one_withdrawal(steps, ask):
    ask("a", "busy")
    one, two = (ask("b", "wanted") for _ in range(2))
    one.withdraw()
    steps.finish("busy")
    steps.finish("wanted")
    assert two.wait(20)
    assert two.rows() == ("wanted", "found")
