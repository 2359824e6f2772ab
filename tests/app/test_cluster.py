"""Tests of measurements on a Dask cluster: results equal local ones, even if a worker is killed or the run stops."""

import os
import signal
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from distributed import LocalCluster
from toy_experiment import Trial

from app.jobs import dispatch
from app.jobs.executors import ClusterExecutor, WorkerExecutor
from attention_core.errors import InputError, SettingError, WorkerError
from attention_core.experiments import entropy_length
from attention_core.inputs import SyntheticSource, SyntheticSpec
from attention_core.runtime import execution


@pytest.fixture(scope="module")
def cluster():
    """Return a scheduler with two workers, each a process with one thread; the app is given its address."""
    with pytest.MonkeyPatch.context() as patch:
        # AppTest replaces the main module by the app's script, which each worker would run at its start.
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
        with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as found:
            patch.setenv("ATTENTION_LAB_SCHEDULER", found.scheduler_address)
            yield found
            dispatch._cluster(found.scheduler_address).client().close()


def test_rows_equal_those_of_this_process_exactly(cluster):
    source = SyntheticSource(SyntheticSpec(n=24, d=4, heads=2, seed=20_261_122))
    tasks = entropy_length.tasks(source, ("softmax", "performer"), longest=24)
    found = list(dispatch.stream("entropy_length", tasks))
    load = execution.Records().load
    assert found == [(task, execution.execute("entropy_length", task, load)) for task in tasks]


def test_a_sweep_continues_when_one_of_two_workers_is_killed(cluster):
    tasks, pids = [Trial(what="sleep", i=i, seconds=0.2) for i in range(12)], []
    for i, (_task, (pid, *_)) in enumerate(dispatch.stream("trial", tasks)):
        pids.append(pid)
        if i == 2:
            os.kill(pid, signal.SIGKILL)
    assert len(pids) == 12
    assert set(pids[3:]) - {pids[2]}, "another went on"
    again = [pid for _task, (pid, *_) in dispatch.stream("trial", tasks)]
    assert again == pids, "nothing is computed twice"


def test_a_sweep_is_stopped_and_continued(cluster):
    tasks = [Trial(what="sleep", i=i, seconds=0.3) for i in range(20, 32)]
    begun = dispatch.stream("trial", tasks)
    first = [next(begun)[1] for _ in range(2)]
    begun.close()
    time.sleep(1.5)  # Tasks that have begun end in this time, and no other task may begin.
    assert all(dispatch.cached_rows("trial", task) is None for task in tasks[2:])
    found = [rows for _task, rows in dispatch.stream("trial", tasks)]
    assert found[:2] == first
    assert min(begun for _pid, begun, _end in found[2:]) > max(end for _pid, _begun, end in first)


def test_errors_are_raised_unchanged(cluster):
    with pytest.raises(InputError, match=r"There is no \{such\}"):
        dispatch.rows("trial", Trial(what="refuse"))


def test_a_bug_in_a_task_is_not_reported_as_a_lost_worker(cluster):
    with pytest.raises(FileNotFoundError):
        dispatch.rows("trial", Trial(what="open_missing"))


def test_timed_tasks_run_on_this_machine(cluster, monkeypatch):
    monkeypatch.setattr(dispatch, "workers", lambda: None)
    assert isinstance(dispatch.executor(Trial(what="square")), ClusterExecutor)
    assert isinstance(dispatch.executor(Trial(what="square", timed=True)), dispatch.ThreadExecutor)
    monkeypatch.setattr(dispatch, "workers", lambda: WorkerExecutor(1))
    assert isinstance(dispatch.executor(Trial(what="square", timed=True)), WorkerExecutor)
    monkeypatch.delenv("ATTENTION_LAB_SCHEDULER")
    assert isinstance(dispatch.executor(Trial(what="square")), WorkerExecutor)


def test_a_scheduler_that_does_not_answer_gives_a_sentence():
    with pytest.raises(WorkerError, match="No Dask scheduler answers at the address in ATTENTION_LAB_SCHEDULER"):
        ClusterExecutor("tcp://127.0.0.1:1").slot_count()


def test_the_error_without_dask_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingError, match=r"pip install attention-lab\[cluster\]"):
        ClusterExecutor("tcp://127.0.0.1:1").slot_count()
