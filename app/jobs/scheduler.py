"""A task queue that is fair between visitors and runs a task once even if several visitors request it.

It cancels a task when no session waits for it any more.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from attention_core.experiments.task import Task
from attention_core.runtime.progress import ProgressCallback, StoppedError

GRACE_SECONDS = 0.25
"""Seconds until a task that no session waits for is ended. Ending a task can also end its worker process.

Many tasks finish sooner, and their worker can then run the next task.
"""
IDLE_SECONDS = 60.0
"""Seconds after which a slot without tasks is closed, which releases its memory."""


class Slot(Protocol):
    """A slot that runs one task at a time, for example a worker process."""

    def run(
        self, experiment: str, task: Task, on_wait: Callable[[], None], on_step: ProgressCallback
    ) -> tuple[Any, ...]:
        """Run a task and return its rows.

        Calls ``on_wait`` if the task waits for the machine, and ``on_step`` at its steps.

        Raises:
            LabError: if the task cannot be run.
            StoppedError: if the task stopped because it was asked to.
        """

    def end(self) -> bool:
        """End the running task, from another thread. Returns False if the task can only be asked to stop."""

    def close(self) -> None:
        """Release the resources of the slot. The default implementation does nothing."""
        return


class Executor(Protocol):
    """A provider of slots that run tasks."""

    @property
    def max_in_flight(self) -> int:
        """The number of tasks that one run requests at a time; errors are as in ``slot_count``."""

    def __hash__(self) -> int:
        """Return a hash by identity: no two executors are equal."""

    def slot_count(self) -> int:
        """Return how many tasks run at a time.

        Raises:
            LabError: if the executor cannot be reached.
        """

    def new_slot(self) -> Slot:
        """Return one more slot."""


@dataclass(frozen=True, kw_only=True)
class TaskStatus:
    """The status of a task.

    Attributes:
        ahead: the number of visitors before it in the queue; None once the task has started.
        is_blocked: whether its worker waits until no timed task (or, for a timed task, no other task) runs.
        timed: whether the task needs the machine for itself.
        steps: finished and total steps; None if the task has reported none.
    """

    ahead: int | None
    is_blocked: bool
    timed: bool
    steps: tuple[int, int] | None = None


@dataclass(eq=False)
class Job:
    """A requested task, and the visitors who requested it."""

    key: Hashable
    experiment: str
    task: Task
    visitors: list[Hashable] = field(default_factory=list)
    future: Future[tuple[Any, ...]] = field(default_factory=Future)
    started: bool = False
    slot: Slot | None = None
    is_blocked: bool = False
    steps: tuple[int, int] | None = None

    def mark_waiting(self) -> None:
        """Mark the task as waiting for the machine."""
        self.is_blocked = True

    def set_progress(self, done: int, total: int) -> None:
        """Store how many steps are done."""
        self.steps = done, total


class TaskHandle:
    """A visitor's request for a task, returned by ``FairScheduler.submit``."""

    def __init__(self, scheduler: "FairScheduler", job: Job, visitor: Hashable) -> None:
        self._scheduler, self._job, self._visitor = scheduler, job, visitor

    def wait(self, seconds: float) -> bool:
        """Wait for the task's end, at most ``seconds`` seconds, and return whether it has ended."""
        return wait_for_any([self], seconds)

    def rows(self) -> tuple[Any, ...]:
        """Return the rows of the task.

        Raises:
            LabError: if the task could not be run.
        """
        return self._job.future.result()

    def status(self) -> TaskStatus:
        """Return the task's status."""
        return self._scheduler.status(self._job)

    def withdraw(self) -> None:
        """Withdraw the request; a task that no session requests any more is ended."""
        self._scheduler.withdraw(self._job, self._visitor)


def wait_for_any(handles: Sequence[TaskHandle], seconds: float) -> bool:
    """Wait until one of the tasks has ended, at most ``seconds`` seconds, and return whether one has."""
    return bool(wait([handle._job.future for handle in handles], seconds, FIRST_COMPLETED).done)


class FairScheduler:
    """A queue of tasks in front of an executor, which serves the visitors in turn.

    Args:
        executor: runs the tasks.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._jobs: dict[Hashable, Job] = {}
        self._waiting: dict[Hashable, deque[Job]] = {}  # Tasks by visitor; the visitor whose turn is next is first.
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def submit(self, visitor: Hashable, experiment: str, task: Task, key: Hashable) -> TaskHandle:
        """Request a task, and return the handle to wait for it.

        Args:
            visitor: the visitor who requests it.
            experiment: the experiment's name.
            task: the task.
            key: identifies the work. Requests with the same key share one run; a unique key always starts a new run.

        Raises:
            LabError: if the executor cannot be reached.
        """
        slot_count = self._executor.slot_count()
        with self._changed:
            job = self._jobs.setdefault(key, Job(key, experiment, task))
            job.visitors.append(visitor)
            if not job.started:
                self._waiting.setdefault(visitor, deque()).append(job)
                if self._threads < slot_count and sum(not each.started for each in self._jobs.values()) > self._idle:
                    self._threads += 1
                    threading.Thread(target=self._serve, args=(self._executor.new_slot(),), daemon=True).start()
                self._changed.notify()
        return TaskHandle(self, job, visitor)

    def status(self, job: Job) -> TaskStatus:
        """Return the status of a task."""
        with self._changed:
            ahead = next((i for i, jobs in enumerate(self._waiting.values()) if job in jobs), None)
            return TaskStatus(
                ahead=ahead, is_blocked=job.is_blocked, timed=getattr(job.task, "timed", False), steps=job.steps
            )

    def withdraw(self, job: Job, visitor: Hashable) -> None:
        """Withdraw a visitor's request. The result stays available while other visitors request the task."""
        with self._changed:
            job.visitors.remove(visitor)
            if not job.started and visitor not in job.visitors:
                self._remove_from_queue(visitor, job)
            if job.visitors:
                return
            if job.started and not job.future.done():
                timer = threading.Timer(GRACE_SECONDS, self._end, (job,))
                timer.daemon = True
                timer.start()
            else:
                self._remove(job)

    def _remove_from_queue(self, visitor: Hashable, job: Job) -> None:
        jobs = self._waiting.get(visitor, deque())
        if job in jobs:
            jobs.remove(job)
        if not jobs:
            self._waiting.pop(visitor, None)

    def _remove(self, job: Job) -> None:
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]

    def _end(self, job: Job) -> None:
        with self._changed:
            # The slot cannot switch to another task while this thread holds the lock, so ``end`` ends this task. A
            # later request for the task starts it again.
            if not job.visitors and job.slot is not None and job.slot.end():
                self._remove(job)

    def _serve(self, slot: Slot) -> None:
        while (job := self._take_job(slot)) is not None:
            rows: tuple[Any, ...] = ()
            error: BaseException | None = None
            try:
                rows = slot.run(job.experiment, job.task, job.mark_waiting, job.set_progress)
            except BaseException as raised:  # ``TaskHandle.rows`` raises this error again for each waiting visitor.
                error = raised
            with self._changed:
                job.slot = None
                if isinstance(error, StoppedError) and job.visitors:
                    self._requeue(job)  # After the task was asked to stop, another visitor requested it.
                elif error is not None:
                    job.future.set_exception(error)
                else:
                    job.future.set_result(rows)
                if job.future.done() and (error is not None or not job.visitors):
                    self._remove(job)  # A new request then runs the task again, which may succeed after an error.
        slot.close()

    def _requeue(self, job: Job) -> None:
        job.started, job.is_blocked, job.steps = False, False, None
        for visitor in job.visitors:
            self._waiting.setdefault(visitor, deque()).appendleft(job)
        self._changed.notify()

    def _take_job(self, slot: Slot) -> Job | None:
        with self._changed:
            self._idle += 1
            has_job = self._changed.wait_for(lambda: self._waiting, IDLE_SECONDS)
            self._idle -= 1
            if not has_job:
                self._threads -= 1
                return None
            visitor = next(iter(self._waiting))
            jobs = self._waiting.pop(visitor)
            job = jobs.popleft()
            if jobs:
                self._waiting[visitor] = jobs  # The visitor is now last in the dict, so all other visitors go first.
            for other in set(job.visitors):
                self._remove_from_queue(other, job)
            job.started, job.slot = True, slot
            return job
