"""Functions that run tasks (the parts of a long computation) in worker processes, on a cluster or in this process.

Visitors take fair turns, and a task that several visitors request runs once.
"""

import os
import uuid
from collections.abc import Callable, Generator, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.jobs.executors import ClusterExecutor, ThreadExecutor, WorkerExecutor, worker_count
from app.jobs.scheduler import Executor, FairScheduler, TaskHandle, TaskStatus, wait_for_any
from app.jobs.singleton import cached_singleton
from attention_core.experiments.task import Task
from attention_core.runtime.cache import ByteLRUCache, Frozen, digest

StatusCallback = Callable[[TaskStatus], object]
"""A callback that receives a task's status while its visitor waits for it."""
POLL_SECONDS = 0.1
"""Seconds between two checks of whether a waiting script is still needed."""


def rows(
    experiment: str, task: Task, on_status: StatusCallback | None = None, *, in_process: bool = False
) -> tuple[Any, ...]:
    """Return the rows (results, as data class instances) of one task of an experiment, computed once for all visitors.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        task: a task made by that module's ``tasks``.
        on_status: receives the task's status while the caller waits.
        in_process: whether the task is short. A short task runs in this process, and does not queue behind long runs.

    Raises:
        LabError: if the task's source cannot be read at this length.
        WorkerError: if the worker that ran the task was lost.
    """
    [(_task, outcome)] = stream(experiment, [task], on_status, in_process=in_process)
    if isinstance(outcome, ac.LabError):
        raise outcome
    return outcome


def stream(
    experiment: str, tasks: Sequence[Task], on_status: StatusCallback | None = None, *, in_process: bool = False
) -> Generator[tuple[Task, tuple[Any, ...] | ac.LabError]]:
    """Yield each task with its rows or its error, in the order of ``tasks``; the arguments are those of ``rows``.

    At most ``max_in_flight`` tasks of an executor are requested at a time. Closing the generator cancels the
    remaining tasks.
    """
    handles: dict[int, TaskHandle] = {}
    next_index = 0

    def executor_of(i: int) -> Executor:
        return _this_process() if in_process else executor(tasks[i])

    def submit(i: int) -> None:
        handles[i] = scheduler_for(executor_of(i)).submit(visitor(), experiment, tasks[i], (experiment, repr(tasks[i])))

    try:
        for i, task in enumerate(tasks):
            outcome: tuple[Any, ...] | ac.LabError | None = cached_rows(experiment, task)
            try:
                if outcome is None:
                    if i not in handles:
                        submit(i)
                    next_index = max(next_index, i + 1)
                    while next_index < len(tasks) and len(handles) < executor_of(next_index).max_in_flight:
                        if cached_rows(experiment, tasks[next_index]) is None:
                            submit(next_index)
                        next_index += 1
                    _wait([handles[i]], on_status)
                    outcome = handles[i].rows()
                    outcome = _rows.get((experiment, digest(task)), partial(Frozen, outcome)).value
            except ac.LabError as error:
                outcome = error
            if i in handles:
                handles.pop(i).withdraw()
            yield task, outcome
    finally:
        for handle in handles.values():
            handle.withdraw()


def run_ready(
    experiment: str, ready: Callable[[], Sequence[Task]], on_status: StatusCallback | None = None
) -> Generator[tuple[Task, tuple[Any, ...]]]:
    """Yield each task with its rows as soon as it ends, until no task is ready. The cache is not used.

    At most ``max_in_flight`` tasks of an executor are requested at a time. Closing the generator cancels the
    running tasks.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        ready: returns the tasks that can run now, the most urgent first. A task stays ready until its rows are taken.
        on_status: receives the status of the first running task while the caller waits.

    Raises:
        LabError: if a task cannot be run; the other running tasks are cancelled.
        WorkerError: if the worker that ran a task was lost.
    """
    handles: dict[Task, TaskHandle] = {}
    try:
        while True:
            for task in ready():
                task_executor = executor(task)
                if task not in handles and len(handles) < task_executor.max_in_flight:
                    # A task that measures time runs again for each visitor. Other tasks run once for all visitors who
                    # request them.
                    key = object() if getattr(task, "timed", False) else (experiment, repr(task))
                    handles[task] = scheduler_for(task_executor).submit(visitor(), experiment, task, key)
            if not handles:
                return
            _wait(tuple(handles.values()), on_status)
            task = next(each for each, handle in handles.items() if handle.wait(0))
            handle = handles.pop(task)
            try:
                rows = handle.rows()
            finally:
                handle.withdraw()
            yield task, rows
    finally:
        for handle in handles.values():
            handle.withdraw()


def _wait(handles: Sequence[TaskHandle], on_status: StatusCallback | None) -> None:
    """Wait until one of the tasks has ended, and report the status of the first task to ``on_status`` meanwhile."""
    if wait_for_any(handles, 0):
        return  # A task has already ended while the page drew earlier results, so no spinner is needed.
    cached.show_spinner()
    with cached.page_lock().released():
        while not wait_for_any(handles, POLL_SECONDS):
            # ``visitor`` is called because it reads the session state. At each such read, Streamlit ends this script if
            # a newer script has replaced it or the visitor has left.
            visitor()
            if on_status:
                on_status(handles[0].status())


def visitor() -> Hashable:
    """Return the identifier of this script's visitor, which is the same for the whole session."""
    return st.session_state.get("visitor") or st.session_state.setdefault("visitor", uuid.uuid4())


ROWS_CACHE_PARTS = 8
"""Size of the cache for rows of results, in ``CACHE_PARTS``: about twice what the runs of a school class need.

A byte of rows takes ten to hundreds of times as long to compute as a byte of a matrix. If the cache were slightly too
small, a visitor who repeats a run in the same order would find none of its rows.
"""

_rows: ByteLRUCache[Frozen[tuple[Any, ...]]] = cached.cache(256, ROWS_CACHE_PARTS)


def cached_rows(experiment: str, task: Task) -> tuple[Any, ...] | None:
    """Return a task's cached rows, or None if they are not cached."""
    entry = _rows.known((experiment, digest(task)))
    return None if entry is None else entry.value


def cache_rows(experiment: str, task: Task, rows: tuple[Any, ...]) -> None:
    """Cache a task's rows that were computed elsewhere, so that no session queues for them."""
    _rows.get((experiment, digest(task)), partial(Frozen, rows))


def drop_rows(experiment: str, task: Task) -> None:
    """Remove a task's rows from the cache. Used for tasks whose results differ from run to run."""
    _rows.drop((experiment, digest(task)))


@cached_singleton
def scheduler_for(executor: Executor) -> FairScheduler:
    """Return the scheduler of an executor."""
    return FairScheduler(executor)


def executor(task: Task) -> Executor:
    """Return the executor that runs a task.

    This is the Dask cluster at ``ATTENTION_LAB_SCHEDULER`` if set, except for timed tasks, which measure this machine.
    Otherwise it is the worker processes, or threads of this process if there are no workers.
    """
    address = os.environ.get("ATTENTION_LAB_SCHEDULER", "").strip()
    if address and not getattr(task, "timed", False):
        return _cluster(address)
    return workers() or _this_process()


@cached_singleton
def _cluster(address: str) -> ClusterExecutor:
    return ClusterExecutor(address)


@cached_singleton
def workers() -> WorkerExecutor | None:
    """Return this server's worker processes, or None if it has none."""
    path = os.environ.get("ATTENTION_LAB_WORKERS_SOCKET")
    count = worker_count()
    return WorkerExecutor(count, Path(path) if path else None) if count else None


@cached_singleton
def _this_process() -> ThreadExecutor:
    return ThreadExecutor(cached.compute_lock(), cached.records().load)
