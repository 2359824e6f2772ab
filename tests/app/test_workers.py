"""Tests of worker processes: their results are correct, a crash loses only one task, and timed tasks run alone."""

import errno
import os
import pickle
import resource
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from driver import charts, visit
from streamlit.runtime.scriptrunner import StopException
from threads import until
from toy_experiment import Trial

from app.jobs import cached, dispatch, executors
from app.jobs.executors import WorkerExecutor
from app.jobs.scheduler import FairScheduler
from attention_core import errors
from attention_core import workers as workers_module
from attention_core.errors import InputError, LabError, SettingError, WorkerError
from attention_core.experiments import entropy_length
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource
from attention_core.runtime import execution

SOURCE = SyntheticSource(SyntheticSpec(n=24, d=4, heads=2))


@pytest.fixture(scope="module")
def workers():
    """Yield an executor with two workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
        patch.chdir(Path(__file__).parents[2])
        # After a test with a Dask cluster, the environment contains Dask's values of these variables.
        for name in executors.MALLOC_ENVIRONMENT:
            patch.delenv(name, raising=False)
        executor = WorkerExecutor(2)
        executor.start()
    yield executor
    executor._process.kill()


@pytest.fixture(scope="module")
def line(workers):
    return FairScheduler(workers)


@pytest.fixture
def in_workers(workers, line, monkeypatch):
    """Run the app's tasks in the workers at normal priority, because other tests may leave no processor idle."""
    monkeypatch.setattr(dispatch, "executor", lambda task: workers)
    monkeypatch.setattr(dispatch, "scheduler_for", lambda executor: line)
    over = threading.Event()

    def lift():
        while not over.wait(0.05):  # Workers start when they are needed, at idle priority.
            schedule(workers, os.SCHED_OTHER)

    lifting = threading.Thread(target=lift, daemon=True)
    lifting.start()
    yield
    over.set()
    lifting.join()
    schedule(workers, os.SCHED_IDLE)


def schedule(workers, policy):
    for child in children(workers):
        with suppress(ProcessLookupError):
            os.sched_setscheduler(child, policy, os.sched_param(0))


def children(workers):
    pid = workers._process.pid
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def ask(line, what, who="one", **given):
    return line.submit(who, "trial", Trial(what=what, **given), object())


def rows_of(ticket):
    assert ticket.wait(60)
    try:
        return ticket.rows()
    finally:
        ticket.withdraw()


def has_ended(pid):
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("source", [SOURCE, TextSource("the cat saw the dog and the dog saw the cat")])
def test_rows_equal_those_of_this_process_exactly(line, source):
    tasks = entropy_length.tasks(source, ("softmax", "performer"), longest=24 if source is SOURCE else 10)
    tickets = [line.submit("one", "entropy_length", task, repr(task)) for task in tasks]
    assert [rows_of(ticket) for ticket in tickets] == [
        execution.execute("entropy_length", task, execution.Records().load) for task in tasks
    ]


def test_a_page_shows_the_same_with_and_without_workers(in_workers, monkeypatch):
    link = {"input": "synthetic", "n": "48", "heads": "2", "h_longest": "64", "h_seeds": "2"}
    with_workers = visit("entropy", link)
    monkeypatch.undo()
    monkeypatch.setattr(dispatch, "_rows", cached.cache())
    without = visit("entropy", link)
    assert len(charts(without)) >= 1
    assert charts(with_workers) == charts(without)


def test_an_upload_is_sent_with_its_task_and_its_record_is_cached(line, tmp_path):
    q, k, v = np.random.default_rng(1).standard_normal((3, 2, 6, 4), dtype=np.float32)
    np.savez(tmp_path / "one.npz", q=q, k=k, v=v)
    source = UploadSource.of("one.npz", (tmp_path / "one.npz").read_bytes())
    assert rows_of(ask(line, "read", source=source)) == (q.tobytes(), True)


def test_a_worker_caches_records_up_to_a_limit_of_bytes():
    one = SOURCE.load()
    size = one.q.nbytes + one.k.nbytes + one.v.nbytes
    most = 2 * size + 2000  # Two records fit, and a third record does not.
    records = execution.Records(most)
    a, b = records.load(SOURCE), records.load(SOURCE, 12)
    assert records.load(SOURCE) is a
    records.load(SOURCE, 23)
    assert records.cache.held <= most
    assert records.load(SOURCE) is a, "what was asked for last is kept"
    assert records.load(SOURCE, 12) is not b


def test_a_worker_has_low_priority_and_is_killed_first(line):
    _pid, policy, threads, score = rows_of(ask(line, "describe"))
    assert (policy, threads, score) == (os.SCHED_IDLE, 1, "1000")


def test_a_dead_worker_loses_only_its_task_and_is_replaced(line, workers):
    other = ask(line, "sleep", "other", seconds=1.0)
    with pytest.raises(WorkerError, match="ended unexpectedly"):
        rows_of(ask(line, "die"))
    assert rows_of(ask(line, "square", i=7)) == (49,)
    assert len(rows_of(other)) == 3


@pytest.mark.parametrize("torch", [False, True])
def test_a_task_that_needs_too_much_memory_is_refused_and_its_worker_survives(line, torch):
    [(pid, *_)] = [rows_of(ask(line, "describe"))]
    with pytest.raises(InputError, match=r"more than 8 GiB of memory\. Choose fewer tokens"):
        rows_of(ask(line, "fill", i=int(torch)))
    assert rows_of(ask(line, "describe"))[0] == pid


def test_errors_are_raised_unchanged(line):
    with pytest.raises(InputError) as refused:
        rows_of(ask(line, "refuse"))
    assert (str(refused.value), refused.value.fields) == ("There is no {such}.", {"what": "{such}"})
    with pytest.raises(ZeroDivisionError) as bug:
        rows_of(ask(line, "fail"))
    assert 'in fail\n    raise ZeroDivisionError("a bug")' in bug.value.__notes__[0]


class Unreadable:
    def __reduce__(self):
        return divmod, (1, 0)  # Unpickling divides by zero.


def test_unreadable_tasks_and_rows_report_their_cause(line, workers):
    rows_of(ask(line, "describe"))
    before = children(workers)
    with pytest.raises(ZeroDivisionError):
        rows_of(line.submit("one", "trial", Unreadable(), object()))
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        rows_of(ask(line, "unsendable"))
    assert rows_of(ask(line, "square", i=6)) == (36,)
    assert before <= children(workers), "no worker died of it"


def test_a_failed_start_is_not_reported_as_lack_of_memory(monkeypatch):
    monkeypatch.setattr(executors.sys, "executable", "/bin/false")
    with pytest.raises(WorkerError, match=r"cannot start\. The server's log shows the reason"):
        WorkerExecutor(1).connect()


def test_a_closed_socket_is_not_reported_as_lack_of_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0)
    with pytest.raises(WorkerError, match="No process listens at the path in ATTENTION_LAB_WORKERS_SOCKET"):
        WorkerExecutor(1, tmp_path / "socket").connect()


def test_a_process_that_fails_while_it_warms_up_accepts_no_connection(tmp_path, monkeypatch):
    class FailedError(Exception):
        """The error of a failing warm-up."""

    refused = []

    def fail():
        with socket.socket(socket.AF_UNIX) as visitor:
            refused.append(visitor.connect_ex(str(tmp_path / "socket")))
        raise FailedError

    monkeypatch.setattr(workers_module, "warm_up", fail)
    before = signal.getsignal(signal.SIGCHLD)
    try:
        with pytest.raises(FailedError):
            workers_module.serve(tmp_path / "socket", owned=False)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert refused == [errno.ECONNREFUSED]


def test_a_memory_limit_of_the_host_does_not_end_a_worker(line):
    ticket = ask(line, "hard_limit")
    assert rows_of(ticket) == (True, True)


@pytest.mark.parametrize("kind", [kind for kind in vars(errors).values() if isinstance(kind, type)])
def test_every_lab_error_can_be_sent_by_a_worker(kind):
    if issubclass(kind, LabError):
        error = pickle.loads(pickle.dumps(kind("{a} of {b}", a="{x", b=2)))
        assert (type(error), str(error), error.template, error.fields) == (
            *(kind, "{x of 2", "{a} of {b}", {"a": "{x", "b": 2}),
        )


@pytest.mark.parametrize("what", ["sleep", "compute"])
def test_a_script_that_ends_while_waiting_ends_only_its_own_task(in_workers, line, monkeypatch, tmp_path, what):
    marks = [tmp_path / "one", tmp_path / "other"]
    other, ended = ask(line, "sleep", "other", seconds=1.0, mark=marks[1]), []

    def visitor():
        if all(mark.exists() for mark in marks):
            ended.append(time.monotonic())
            raise StopException
        return "one"

    monkeypatch.setattr(dispatch, "visitor", visitor)
    with pytest.raises(StopException):
        next(dispatch.run_ready("trial", lambda: [Trial(what=what, seconds=60.0, mark=marks[0])]))
    until(lambda: has_ended(marks[0].read_text()))
    assert len(rows_of(other)) == 3
    assert rows_of(ask(line, "square", i=5)) == (25,)


def test_a_worker_keeps_freed_memory_for_the_next_array(line):
    [faults] = rows_of(ask(line, "page_faults"))
    # If freed memory were returned to the system, each of twenty rounds would map 16 MiB again.
    assert faults < 3 * 2**24 / resource.getpagesize()


def test_an_idle_worker_ends_with_its_connection(workers):
    before = children(workers)
    connection = workers.connect()
    until(lambda: children(workers) - before)
    [pid] = children(workers) - before
    connection.close()
    until(lambda: has_ended(pid))


def test_timed_tasks_run_exclusively_and_report_that_they_wait(line, workers, tmp_path):
    # Even on a busy machine, this task is long enough to see that the two other tasks wait.
    running = ask(line, "sleep", "other", seconds=4.0, mark=tmp_path / "running")
    until((tmp_path / "running").exists)
    timed = ask(line, "sleep", seconds=0.3, timed=True)
    until(lambda: timed.status().is_blocked)
    second = FairScheduler(WorkerExecutor(1, workers.start()))  # another server with the same parent of workers
    late = ask(second, "sleep", seconds=0.1)
    until(lambda: late.status().is_blocked)
    assert timed.status().timed
    assert not late.status().timed
    ends = [rows_of(ticket)[1:] for ticket in (running, timed, late)]
    assert ends[0][1] <= ends[1][0]
    assert ends[1][1] <= ends[2][0]


def test_an_ended_timed_task_releases_the_machine(line, tmp_path):
    timed = ask(line, "sleep", seconds=60.0, timed=True, mark=tmp_path / "timed")
    until((tmp_path / "timed").exists)
    other = ask(line, "square", "other", i=3)
    timed.withdraw()
    assert rows_of(other) == (9,)


@pytest.mark.parametrize(("words", "count"), [("", 2), ("0", 0), ("3", 3)])
def test_the_number_of_workers_is_set_by_the_host(monkeypatch, words, count):
    monkeypatch.setenv("ATTENTION_LAB_WORKERS", words)
    assert executors.worker_count() == count


@pytest.mark.parametrize("words", ["two", "-1", "65"])
def test_an_invalid_number_of_workers_is_refused(monkeypatch, words):
    monkeypatch.setenv("ATTENTION_LAB_WORKERS", words)
    with pytest.raises(SettingError, match="whole number from 0 to 64"):
        executors.worker_count()


def test_tasks_run_in_this_process_if_no_process_can_be_forked(monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("ATTENTION_LAB_WORKERS", "")
    assert executors.worker_count() == 0
    monkeypatch.setenv("ATTENTION_LAB_WORKERS", "1")
    with pytest.raises(SettingError, match="need Linux"):
        executors.worker_count()


def test_the_parent_of_workers_ends_with_its_server_and_is_restarted_if_needed(line, workers):
    # This is the last test in this file, because the restarted process takes seconds to warm up.
    rows_of(ask(line, "square"))
    first, folder = workers._process, workers.start().parent
    first.stdin.close()  # The system closes this pipe when a server is killed.
    assert first.wait(10) == 0
    assert not folder.exists()
    workers.start()
    assert workers._process.pid != first.pid
