"""Tests of runs, long measurements on a page: they are started, stopped, continued, and never computed twice."""

import re
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import StopException
from streamlit.testing.v1 import AppTest

from app.jobs import dispatch, runs
from app.jobs.scheduler import Slot, TaskStatus
from attention_core.errors import InputError, WorkerError

AT_ONCE = """
import importlib
import streamlit as st
from app.jobs import runs

squares, state = importlib.import_module("attention_core.experiments.squares"), st.session_state
tasks = [squares.Square(state["name"], i) for i in range(state["count"])]

def draw(rows, key):
    if state["broken"]:
        raise RuntimeError("the chart failed")
    st.markdown(f"found {rows}")

rows = runs.run_immediately("squares", tasks, draw, key="page.squares")
st.caption(f"returned {rows}")
"""
ON_BUTTON = """
import importlib
import streamlit as st
from app.jobs import runs

squares, state = importlib.import_module("attention_core.experiments.squares"), st.session_state
asked = state["name"], state["count"]

def following(rows):
    return [squares.Square(asked[0], len(rows))] if len(rows) < asked[1] else []

def draw(found, key):
    if state["broken"]:
        raise RuntimeError("the chart failed")
    st.markdown(f"{key}: {found and found.rows}")

found = runs.run_on_button(
    "squares", asked, following, key="page", row=st.container(), draw=draw,
    label="Measure", icon=":material/timer:", button="page.measure",
    progress=lambda found: (found.done_count / asked[1], f"{found.done_count} done"),
)
st.caption(f"returned {found and found.rows}")
"""


@dataclass(frozen=True)
class Square:
    """A task of the experiment below; each test uses its own name, because results are shared."""

    name: str
    i: int


@pytest.fixture
def calls(monkeypatch):
    """Return the number of calls per task of an experiment that squares numbers; ``before`` maps tasks to a hook."""
    counted = Counter()
    module = ModuleType("attention_core.experiments.squares")
    module.Square, module.before = Square, {}

    def compute(task, *, load):
        counted[task.name, task.i] += 1
        module.before.get(task.i, lambda: None)()
        return (task.i**2,)

    module.run = compute
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(runs, "MESSAGE_INTERVAL", 0.0)
    counted.before = module.before
    return counted


def end_of_script():
    """Raise Streamlit's exception that ends a script replaced by a newer one."""
    raise StopException


def refuse():
    raise InputError("There is no {what}.", what="such *number*")


def opened(script, name, count=4):
    at = AppTest.from_string(script, default_timeout=20)
    at.session_state["name"], at.session_state["count"], at.session_state["broken"] = name, count, False
    return at


def label(at, key):
    return next((button.label for button in at.button if button.key == key), None)


def returned(at):
    return at.caption[-1].value


def bars(at):
    return [bar.proto.text for bar in at.get("progress")]


def test_a_run_starts_immediately_and_leaves_only_its_drawing(calls):
    at = opened(AT_ONCE, "begins").run()
    assert not at.exception
    assert [m.value for m in at.markdown] == ["found [0, 1, 4, 9]"]
    assert not at.button
    assert not bars(at)
    assert returned(at) == "returned [0, 1, 4, 9]"


def test_cached_rows_are_computed_once_for_all_visitors(calls):
    for _visitor in range(2):
        at = opened(AT_ONCE, "shared").run()
        at.session_state["count"] = 5
        assert returned(at.run()) == "returned [0, 1, 4, 9, 16]"
    assert set(calls.values()) == {1}
    assert len(calls) == 5


def test_a_stopped_run_keeps_its_rows_and_can_be_continued(calls):
    calls.before[2] = end_of_script
    at = opened(AT_ONCE, "stopped").run()
    assert bars(at) == ["2 of 4 results · about 0 s left"]
    at.button(key="page.squares.switch").click().run()
    assert bars(at) == ["Stopped after 2 of 4 results"]
    assert [m.value for m in at.markdown] == ["found [0, 1]"]
    assert returned(at) == "returned [0, 1]"
    assert label(at, "page.squares.switch") == "Continue"
    assert bars(at.run()) == ["Stopped after 2 of 4 results"], "drawing the page again is no reason to go on"
    calls.before.clear()
    at.button(key="page.squares.switch").click().run()
    assert returned(at) == "returned [0, 1, 4, 9]"
    assert not bars(at)
    assert dict(calls) == {("stopped", i): 2 if i == 2 else 1 for i in range(4)}  # The stop interrupted task 2.


def test_a_run_stopped_during_a_redraw_loses_nothing(calls, monkeypatch):
    calls.before[3] = end_of_script
    script = AT_ONCE.replace('if state["broken"]:', 'if state["broken"]:\n        st.stop()')
    at = opened(script, "again").run()
    monkeypatch.setattr(runs, "FIRST_DRAW", -1.0)
    at.session_state["broken"] = True
    at.run()  # This run ends at its first drawing.
    at.session_state["broken"] = False
    at.button(key="page.squares.switch").click().run()
    assert bars(at) == ["Stopped after 3 of 4 results"]


def test_another_request_starts_a_new_run_after_a_stop(calls):
    calls.before[2] = end_of_script
    at = opened(AT_ONCE, "anew").run()
    at.button(key="page.squares.switch").click().run()
    calls.before.clear()
    at.session_state["count"] = 3
    assert returned(at.run()) == "returned [0, 1, 4]"


def test_a_refused_task_gives_its_reason_and_the_others_run(calls):
    calls.before[1] = refuse
    at = opened(AT_ONCE, "refuses").run()
    assert not at.exception
    assert [i.value for i in at.info] == [r"There is no such \*number\*."]
    assert returned(at) == "returned [0, 4, 9]"


@pytest.mark.parametrize("slow", [False, True])
def test_a_failing_drawing_loses_no_rows(calls, slow):
    name = f"broken {slow}"
    if slow:
        calls.before[1] = lambda: time.sleep(runs.FIRST_DRAW + 0.1)  # Rows are then drawn before all tasks have ended.
    at = opened(AT_ONCE, name)
    at.session_state["broken"] = True
    assert at.run().exception
    at.session_state["broken"] = False
    assert returned(at.run()) == "returned [0, 1, 4, 9]"
    assert dict(calls) == {(name, i): 1 for i in range(4)}


def test_a_chart_is_not_drawn_for_every_task(calls, monkeypatch):
    monkeypatch.setattr(runs, "MIN_REDRAW", 10.0)
    for i in range(4):
        calls.before[i] = lambda: time.sleep(0.15)
    keys = "draws = state.setdefault('draws', []); draws.append(key)"
    at = opened(AT_ONCE.replace("    if state", f"    {keys}\n    if state"), "seldom").run()
    [some, every] = at.session_state["draws"]
    assert some in ("page.squares.1", "page.squares.2", "page.squares.3")  # This depends on the machine's speed.
    assert every == "page.squares.all"


def test_a_chart_that_is_slow_to_draw_is_drawn_less_often():
    assert runs.pause(0.0) == runs.pause(runs.MIN_REDRAW * runs.DRAWING_SHARE) == runs.MIN_REDRAW
    assert runs.pause(0.2) == pytest.approx(1.6)
    assert runs.pause(60.0) == runs.MAX_REDRAW
    assert runs.pause(0.2, runs=2) == pytest.approx(3.2)  # Two runs share the time for drawing.
    assert runs.pause(0.01, runs=2) == runs.MIN_REDRAW


@pytest.mark.parametrize(("others", "cost", "every"), [(0, 0.4, 3.6), (1, 0.2, 3.4), (1, 0.4, 5.4)])
def test_drawing_takes_an_eighth_of_the_time_and_the_end_is_drawn_immediately(monkeypatch, others, cost, every):
    clock, drawings = [0.0], []
    monkeypatch.setattr(runs.time, "monotonic", lambda: clock[0])

    def results():
        while clock[0] < 60:
            clock[0] += 0.1
            yield Square("clock", 0), (0,)

    def draw(done):
        drawings.append(clock[0])
        clock[0] += cost

    monkeypatch.setattr(runs, "_runs", {runs.Run(other) for other in range(others)})
    runs._collect_results(
        runs.Run("clock"), [], results(), report=lambda done: None, draw=draw, first_draw=runs.FIRST_DRAW
    )
    assert 60 / (every + 0.1) - 1 <= len(drawings) <= 60 / every + 1
    assert drawings[0] == pytest.approx(0.3)
    assert len(runs._runs) == others


def test_cached_rows_show_no_progress(calls, monkeypatch):
    messages, progress = [], DeltaGenerator.progress
    monkeypatch.setattr(runs, "MESSAGE_INTERVAL", 10.0)
    monkeypatch.setattr(DeltaGenerator, "progress", lambda *a, **k: messages.append(a) or progress(*a, **k))
    assert returned(opened(AT_ONCE, "counted", 40).run()).endswith("1521]")
    assert len(messages) == 1


def test_one_button_starts_stops_and_continues_a_run(calls):
    at = opened(ON_BUTTON, "button").run()
    assert returned(at) == "returned None"
    assert not calls
    calls.before[2] = end_of_script
    at.button(key="page.measure").click().run()
    assert label(at, "page.measure") == "Stop"
    assert [m.value for m in at.markdown] == ["1: [0]"]
    assert bars(at) == ["2 done"]
    calls.before.clear()
    at.run()  # A newer script continues the run.
    assert label(at, "page.measure") == "Measure"
    assert label(at, "page.continue") is None
    assert returned(at) == "returned [0, 1, 4, 9]"
    assert [m.value for m in at.markdown] == ["end: [0, 1, 4, 9]"]
    assert dict(calls) == {("button", i): 2 if i == 2 else 1 for i in range(4)}
    at.button(key="page.measure").click().run()
    assert calls["button", 0] == 2, "what is measured is not cached"


def test_a_measurement_is_stopped_and_continued(calls):
    calls.before[2] = end_of_script
    at = opened(ON_BUTTON, "pause").run()
    at.button(key="page.measure").click().run()
    at.button(key="page.measure").click().run()
    assert (label(at, "page.measure"), label(at, "page.continue")) == ("Measure", "Continue")
    assert returned(at) == "returned [0, 1]"
    calls.before.clear()
    at.button(key="page.continue").click().run()
    assert returned(at) == "returned [0, 1, 4, 9]"
    assert label(at, "page.continue") is None
    assert at.session_state["page.run"].done_count == 4


def test_a_run_without_measurements_cannot_be_continued(calls):
    calls.before[0] = end_of_script
    at = opened(ON_BUTTON, "first").run()
    at.button(key="page.measure").click().run()
    at.button(key="page.measure").click().run()
    assert (label(at, "page.measure"), label(at, "page.continue")) == ("Measure", None)
    assert returned(at) == "returned None"


def test_another_request_stops_the_measurement_and_keeps_its_rows(calls):
    calls.before[2] = end_of_script
    at = opened(ON_BUTTON, "question").run()
    at.button(key="page.measure").click().run()
    at.session_state["count"] = 3
    at.run()
    assert (label(at, "page.measure"), label(at, "page.continue")) == ("Measure", None)
    assert returned(at) == "returned [0, 1]"
    assert calls["question", 2] == 1
    at.session_state["count"] = 4
    assert label(at.run(), "page.continue") == "Continue"


def test_a_press_without_new_rows_keeps_the_previous_run(calls):
    at = opened(ON_BUTTON, "nothing", 2).run()
    at.button(key="page.measure").click().run()
    calls.before[0] = end_of_script
    at.button(key="page.measure").click().run()
    at.button(key="page.measure").click().run()
    assert label(at, "page.measure") == "Measure"
    assert returned(at) == "returned [0, 1]"


def test_a_refused_measurement_gives_its_reason_and_can_be_retried(calls):
    calls.before[1] = refuse
    at = opened(ON_BUTTON, "tried").run()
    at.button(key="page.measure").click().run()
    assert not at.exception
    assert [i.value for i in at.info] == [r"There is no such \*number\*."]
    assert returned(at) == "returned [0]"
    assert label(at, "page.measure") == "Measure"
    calls.before.clear()
    at.button(key="page.continue").click().run()
    assert not at.info
    assert returned(at) == "returned [0, 1, 4, 9]"


def test_a_failing_drawing_loses_no_measurement(calls):
    at = opened(ON_BUTTON, "drawing").run()
    at.session_state["broken"] = True
    assert at.button(key="page.measure").click().run().exception
    at.session_state["broken"] = False
    assert returned(at.run()) == "returned [0, 1, 4, 9]"
    assert dict(calls) == {("drawing", i): 1 for i in range(4)}


def test_pauses_do_not_count_as_run_time(calls):
    calls.before[1] = end_of_script
    at = opened(ON_BUTTON, "time").run()
    at.button(key="page.measure").click().run()
    at.button(key="page.measure").click().run()
    time.sleep(0.5)
    calls.before.clear()
    at.button(key="page.continue").click().run()
    assert 0 < at.session_state["page.run"].seconds < 0.4


@given(st.floats(0, 1e4), st.floats(1e-6, 1))
def test_the_time_left_follows_from_the_work_left(seconds, share):
    found = re.fullmatch(r"about (\d+) s left", runs.time_left(seconds, share))
    assert int(found[1]) == pytest.approx(seconds / share - seconds, rel=1e-12, abs=0.501)
    assert runs.time_left(seconds, 1.0) == "about 0 s left"
    assert runs.time_left(seconds, 0.0) == "estimating the time left"


def test_cached_rows_do_not_count_in_the_time_left(calls, monkeypatch):
    opened(AT_ONCE, "warm").run()
    shown, clock = [], [100.0]

    def slow_task():
        clock[0] += 30.0

    calls.before.update(dict.fromkeys(range(4, 8), slow_task))
    monkeypatch.setattr(runs.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(DeltaGenerator, "progress", lambda self, share, text, **look: shown.append(text))
    opened(AT_ONCE, "warm", count=8).run()
    assert shown[:5] == [f"{i} of 8 results · estimating the time left" for i in range(5)]
    assert shown[5:8] == [
        "5 of 8 results · about 90 s left",
        "6 of 8 results · about 60 s left",
        "7 of 8 results · about 30 s left",
    ]


def lose():
    raise WorkerError("Its *worker* is lost.")


def test_a_lost_worker_stops_the_run_which_continues_with_its_task(calls):
    calls.before[2] = lose
    at = opened(AT_ONCE, "lost").run()
    assert not at.exception
    assert [i.value for i in at.info] == [r"Its \*worker\* is lost."]
    assert bars(at) == ["Stopped after 2 of 4 results"]
    assert returned(at) == "returned [0, 1]"
    assert label(at, "page.squares.switch") == "Continue"
    assert calls["lost", 3] == 0
    calls.before.clear()
    at.button(key="page.squares.switch").click().run()
    assert not at.info
    assert returned(at) == "returned [0, 1, 4, 9]"


def test_a_measurement_can_be_continued_after_its_worker_is_lost(calls):
    calls.before[1] = lose
    at = opened(ON_BUTTON, "lost measure").run()
    at.button(key="page.measure").click().run()
    assert [i.value for i in at.info] == [r"Its \*worker\* is lost."]
    calls.before.clear()
    at.button(key="page.continue").click().run()
    assert returned(at) == "returned [0, 1, 4, 9]"


class Slow:
    """An executor that works ahead and records the tasks it receives."""

    max_in_flight = 3

    def __init__(self, standing):
        self.asked, self.standing, self.left = [], standing, []

    def submit(self, visitor, experiment, task, key):
        self.asked.append(task.i)
        return SlowTicket(self, task)


class SlowTicket:
    def __init__(self, slow, task):
        self.slow, self.task, self.waited = slow, task, 0

    def wait(self, seconds):
        self.waited += 1
        return self.waited > 3

    def status(self):
        return self.slow.standing

    def rows(self):
        return (self.task.i**2,)

    def withdraw(self):
        self.slow.left.append(self.task.i)


def slow(monkeypatch, **standing):
    found = Slow(TaskStatus(**standing))
    monkeypatch.setattr(dispatch, "executor", lambda task: found)
    monkeypatch.setattr(dispatch, "scheduler_for", lambda executor: executor)
    monkeypatch.setattr(dispatch, "wait_for_any", lambda handles, seconds: any(each.wait(0) for each in handles))
    return found


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ({"ahead": None, "is_blocked": False, "timed": False}, ""),
        ({"ahead": None, "is_blocked": False, "timed": True}, ""),
        ({"ahead": 0, "is_blocked": False, "timed": True}, "You are next in the queue"),
        ({"ahead": 1, "is_blocked": False, "timed": False}, "1 visitor is ahead of you in the queue"),
        ({"ahead": 2, "is_blocked": False, "timed": False}, "2 visitors are ahead of you in the queue"),
        (
            {"ahead": None, "is_blocked": True, "timed": True},
            "Waiting for other computations to end, because a timing run needs the machine to itself",
        ),
        (
            {"ahead": None, "is_blocked": True, "timed": False},
            "Waiting for a timing run to end, because it needs the machine to itself",
        ),
    ],
)
def test_the_position_in_the_queue_is_shown_while_a_task_waits(calls, monkeypatch, standing, expected):
    slow(monkeypatch, **standing)
    shown = []
    monkeypatch.setattr(DeltaGenerator, "progress", lambda self, share, text, **look: shown.append(text))
    at = opened(AT_ONCE, f"line {standing}").run()
    assert returned(at) == "returned [0, 1, 4, 9]"
    assert runs.queue_text(TaskStatus(**standing)) == expected
    assert shown.count(expected) == (1 if expected else 0), "once for each change"


@pytest.mark.parametrize(
    ("steps", "share", "words"),
    [
        (None, 0.25, "1 of 4 results · about 7 s left"),
        ((0, 20), 0.25, "1 of 4 results · step 0 of 20 · about 7 s left"),
        ((5, 20), 0.3125, "1 of 4 results · step 5 of 20 · about 7 s left"),
    ],
)
def test_the_progress_text_has_the_share_and_the_time_left(steps, share, words):
    assert runs._progress_text(1, 4, steps, "about 7 s left") == (share, words)


def test_the_steps_of_a_single_task_are_the_progress_of_its_run():
    assert runs._progress_text(0, 1, (5, 20), "about 7 s left") == (0.25, "step 5 of 20 · about 7 s left")


def test_a_sweep_requests_as_many_tasks_as_can_run_and_withdraws_the_rest(calls, monkeypatch):
    executor = slow(monkeypatch, ahead=None, is_blocked=False, timed=False)
    found = dispatch.stream("squares", [Square("ahead", i) for i in range(6)])
    assert next(found)[1] == (0,)
    assert executor.asked == [0, 1, 2]
    assert next(found)[1] == (1,)
    assert executor.asked == [0, 1, 2, 3]
    found.close()
    assert executor.left == [0, 1, 2, 3]
    again = [rows for _task, rows in dispatch.stream("squares", [Square("ahead", i) for i in range(6)])]
    assert again == [(i**2,) for i in range(6)]
    assert executor.asked == [0, 1, 2, 3, 2, 3, 4, 5], "what was found is not asked for again"


class TwoSlots:
    """An executor that runs two tasks at a time; each waits for the other."""

    max_in_flight = 3

    def __init__(self):
        self.barrier = threading.Barrier(2, timeout=10)

    def slot_count(self):
        return 2

    def new_slot(self):
        executor = self

        class Both(Slot):
            def run(self, experiment, task, on_wait, on_step):
                executor.barrier.wait()
                return (task,)

        return Both()


def test_ready_tasks_run_concurrently(monkeypatch):
    executor = TwoSlots()
    monkeypatch.setattr(dispatch, "executor", lambda task: executor)
    left = {"a": [0, 1, 2], "b": [0, 1, 2]}

    def ready():
        return [Square(name, tasks[0]) for name, tasks in left.items() if tasks]

    found = []
    for task, [row] in dispatch.run_ready("squares", ready):
        assert task == row
        assert left[task.name].pop(0) == task.i
        found.append(task)
    assert sorted((task.name, task.i) for task in found) == [(name, i) for name in "ab" for i in range(3)]
