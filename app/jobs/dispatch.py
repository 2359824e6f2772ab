"""Where tasks run: in worker processes, on a cluster or here, in one line for all visitors and once for all who ask."""

import os
import uuid
from collections.abc import Callable, Generator, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.jobs.executors import Cluster, Here, Workers, worker_count
from app.jobs.scheduler import Executor, FairScheduler, TaskHandle, TaskStatus
from app.jobs.singleton import once
from attention_core.experiments.task import Task
from attention_core.runtime.cache import ByteLRUCache, Frozen, digest

Waiting = Callable[[TaskStatus], object]
"""Told how a task stands while its visitor waits for it."""
POLL = 0.1
"""Seconds after which a script that waits looks whether its visitor still does."""


def rows(experiment: str, task: Task, waiting: Waiting | None = None, *, light: bool = False) -> tuple[Any, ...]:
    """What one task of an experiment finds, computed once for all visitors.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        task: one of the tasks that module's ``tasks`` made.
        waiting: told how the task stands, while it is waited for.
        light: whether it is over as soon as a look: it runs in this process, and no sweep is before it in line.

    Raises:
        LabError: if the task's source cannot be read at this length.
        WorkerError: if what computed it was lost.
    """
    [(_task, outcome)] = stream(experiment, [task], waiting, light=light)
    if isinstance(outcome, ac.LabError):
        raise outcome
    return outcome


def stream(
    experiment: str, tasks: Sequence[Task], waiting: Waiting | None = None, *, light: bool = False
) -> Generator[tuple[Task, tuple[Any, ...] | ac.LabError]]:
    """Each task with what it finds, or why it finds nothing, in their order; arguments as of ``rows``.

    As many are under way at a time as the executor has places for. Close it: that is what takes back the others.
    """
    asked: dict[int, TaskHandle] = {}
    ahead = 0

    def to(i: int) -> Executor:
        return _here() if light else executor(tasks[i])

    def ask(i: int) -> None:
        asked[i] = line(to(i)).ask(visitor(), experiment, tasks[i], (experiment, repr(tasks[i])))

    try:
        for i, task in enumerate(tasks):
            found: tuple[Any, ...] | ac.LabError | None = known(experiment, task)
            try:
                if found is None:
                    if i not in asked:
                        ask(i)
                    ahead = max(ahead, i + 1)
                    while ahead < len(tasks) and len(asked) < to(ahead).abreast:
                        if known(experiment, tasks[ahead]) is None:
                            ask(ahead)
                        ahead += 1
                    _wait(asked[i], waiting)
                    found = asked[i].rows()
                    found = _rows.get((experiment, digest(task)), partial(Frozen, found)).value
            except ac.LabError as error:
                found = error
            if i in asked:
                asked.pop(i).leave()
            yield task, found
    finally:
        for ticket in asked.values():
            ticket.leave()


def execute(experiment: str, task: Task, waiting: Waiting | None = None) -> tuple[Any, ...]:
    """Run one task in any case and wait for its rows; arguments and errors as of ``rows``."""
    ticket = line(executor(task)).ask(visitor(), experiment, task, object())
    try:
        _wait(ticket, waiting)
        return ticket.rows()
    finally:
        ticket.leave()


def _wait(ticket: TaskHandle, waiting: Waiting | None) -> None:
    if ticket.wait(0):
        return  # what has come while others were drawn is taken at once
    cached.begin()
    with cached.drawing().away():
        while not ticket.wait(POLL):
            # Asking for the session's state is what ends a script that a newer one has replaced, or whose visitor left.
            visitor()
            if waiting:
                waiting(ticket.standing())


def visitor() -> Hashable:
    """Who this script runs for: the same as long as the session."""
    return st.session_state.get("visitor") or st.session_state.setdefault("visitor", uuid.uuid4())


ROWS = 8
"""Parts for rows, which take ten to hundreds of times as long by the byte as a matrix: all that a class sweeps, and as
much again. Who goes through it in the same order again would find nothing of it once a little had to make room."""

_rows: ByteLRUCache[Frozen[tuple[Any, ...]]] = cached.cache(256, ROWS)


def known(experiment: str, task: Task) -> tuple[Any, ...] | None:
    """A task's rows where they are kept; None where it has not been run."""
    found = _rows.known((experiment, digest(task)))
    return None if found is None else found.value


def keep(experiment: str, task: Task, rows: tuple[Any, ...]) -> None:
    """Take over a task's rows that are there already, so that nobody waits for them in line."""
    _rows.get((experiment, digest(task)), partial(Frozen, rows))


def forget(experiment: str, task: Task) -> None:
    """Let ``rows`` compute a task anew, where its results differ from run to run."""
    _rows.drop((experiment, digest(task)))


@once
def line(executor: Executor) -> FairScheduler:
    """The line before an executor."""
    return FairScheduler(executor)


def executor(task: Task) -> Executor:
    """Where a task runs; nothing else knows.

    On the Dask cluster that ``ATTENTION_LAB_SCHEDULER`` names, but for what is timed, as that is about this machine; in
    worker processes; or, where there are none, in threads of this process.
    """
    address = os.environ.get("ATTENTION_LAB_SCHEDULER", "").strip()
    if address and not getattr(task, "timed", False):
        return _cluster(address)
    return workers() or _here()


@once
def _cluster(address: str) -> Cluster:
    return Cluster(address)


@once
def workers() -> Workers | None:
    """This server's worker processes; None where it has none."""
    path = os.environ.get("ATTENTION_LAB_WORKERS_SOCKET")
    count = worker_count()
    return Workers(count, Path(path) if path else None) if count else None


@once
def _here() -> Here:
    return Here(cached.gate(), cached.records().load)
