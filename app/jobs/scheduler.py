"""Who waits for tasks: visitor by visitor, equal tasks once for all, and what nobody waits for any more is ended."""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from attention_core.experiments.task import Task
from attention_core.runtime.progress import StoppedError, Told

GRACE = 0.25
"""Seconds until a task that nobody waits for is ended: many end sooner by themselves, and leave their worker warm."""
IDLE = 60.0
"""Seconds after which a place without tasks is given up, with the memory it holds."""


class Place(Protocol):
    """Where one task runs at a time."""

    def run(self, experiment: str, task: Task, held: Callable[[], None], told: Told) -> tuple[Any, ...]:
        """Run a task and wait for its rows; ``held`` is called if it has to wait for the machine, ``told`` of steps.

        Raises:
            LabError: if it cannot be run.
            StoppedError: if it stopped because it was asked to.
        """

    def end(self) -> bool:
        """End what runs, asked by another thread; False where it can only be asked to stop."""

    def close(self) -> None:
        """Give back what the place holds."""


class Executor(Protocol):
    """Where tasks run."""

    @property
    def abreast(self) -> int:
        """Tasks that one sweep asks for at a time; errors as of ``places``."""

    def __hash__(self) -> int:
        """Each is another."""

    def places(self) -> int:
        """How many tasks run at once.

        Raises:
            LabError: if it is out of reach.
        """

    def place(self) -> Place:
        """One more place."""


@dataclass(frozen=True, kw_only=True)
class TaskStatus:
    """How a task stands.

    Attributes:
        ahead: visitors whose turn comes before; None where it has begun.
        held: whether it has begun, and waits until it may have the machine.
        timed: whether it wants it for itself.
        steps: how many of its steps are done, and of how many; None where it has told of none.
    """

    ahead: int | None
    held: bool
    timed: bool
    steps: tuple[int, int] | None = None


@dataclass(eq=False)
class Job:
    """A task that is wanted, and by whom."""

    key: Hashable
    experiment: str
    task: Task
    wanted: list[Hashable] = field(default_factory=list)
    found: Future[tuple[Any, ...]] = field(default_factory=Future)
    begun: bool = False
    place: Place | None = None
    held: bool = False
    steps: tuple[int, int] | None = None

    def hold(self) -> None:
        """Say that it waits for the machine."""
        self.held = True

    def tell(self, done: int, total: int) -> None:
        """Say how far it is."""
        self.steps = done, total


class TaskHandle:
    """A visitor's wish for a task; made by ``FairScheduler.ask``."""

    def __init__(self, line: "FairScheduler", job: Job, visitor: Hashable) -> None:
        self._line, self._job, self._visitor = line, job, visitor

    def wait(self, seconds: float) -> bool:
        """Wait for the task's end, no longer than so many seconds; whether it has come."""
        return bool(wait([self._job.found], seconds).done)

    def rows(self) -> tuple[Any, ...]:
        """What the task found.

        Raises:
            LabError: if it could not be run.
        """
        return self._job.found.result()

    def standing(self) -> TaskStatus:
        """How it stands."""
        return self._line.standing(self._job)

    def leave(self) -> None:
        """Want it no more."""
        self._line.leave(self._job, self._visitor)


class FairScheduler:
    """The line before an executor.

    Args:
        executor: where tasks run.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._jobs: dict[Hashable, Job] = {}
        self._waiting: dict[Hashable, deque[Job]] = {}  # whose turn comes first stands first
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def ask(self, visitor: Hashable, experiment: str, task: Task, key: Hashable) -> TaskHandle:
        """Want a task.

        Args:
            visitor: who.
            experiment: the experiment's name.
            task: its task.
            key: what equal tasks have in common; one that must be run in any case has a key of its own.

        Raises:
            LabError: if the executor is out of reach.
        """
        places = self._executor.places()
        with self._changed:
            job = self._jobs.setdefault(key, Job(key, experiment, task))
            job.wanted.append(visitor)
            if not job.begun:
                self._waiting.setdefault(visitor, deque()).append(job)
                if self._threads < places and sum(not each.begun for each in self._jobs.values()) > self._idle:
                    self._threads += 1
                    threading.Thread(target=self._serve, args=(self._executor.place(),), daemon=True).start()
                self._changed.notify()
        return TaskHandle(self, job, visitor)

    def standing(self, job: Job) -> TaskStatus:
        """How a task stands."""
        with self._changed:
            ahead = next((i for i, jobs in enumerate(self._waiting.values()) if job in jobs), None)
            return TaskStatus(ahead=ahead, held=job.held, timed=getattr(job.task, "timed", False), steps=job.steps)

    def leave(self, job: Job, visitor: Hashable) -> None:
        """Want a task no more. What has been found can be had as long as somebody wants it."""
        with self._changed:
            job.wanted.remove(visitor)
            if not job.begun and visitor not in job.wanted:
                self._forget(visitor, job)
            if job.wanted:
                return
            if job.begun and not job.found.done():
                timer = threading.Timer(GRACE, self._end, (job,))
                timer.daemon = True
                timer.start()
            else:
                self._drop(job)

    def _forget(self, visitor: Hashable, job: Job) -> None:
        jobs = self._waiting.get(visitor, deque())
        if job in jobs:
            jobs.remove(job)
        if not jobs:
            self._waiting.pop(visitor, None)

    def _drop(self, job: Job) -> None:
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]

    def _end(self, job: Job) -> None:
        with self._changed:
            # Under the lock, so that it is still this task that the place runs; who asks for it now begins it anew.
            if not job.wanted and job.place is not None and job.place.end():
                self._drop(job)

    def _serve(self, place: Place) -> None:
        while (job := self._next(place)) is not None:
            rows: tuple[Any, ...] = ()
            error: BaseException | None = None
            try:
                rows = place.run(job.experiment, job.task, job.hold, job.tell)
            except BaseException as raised:  # whatever it is, it is for who waits
                error = raised
            with self._changed:
                job.place = None
                if isinstance(error, StoppedError) and job.wanted:
                    self._again(job)  # somebody has come who wants it, between the asking and the stop
                elif error is not None:
                    job.found.set_exception(error)
                else:
                    job.found.set_result(rows)
                if job.found.done() and (error is not None or not job.wanted):
                    self._drop(job)  # asked again, it may succeed
        place.close()

    def _again(self, job: Job) -> None:
        job.begun, job.held, job.steps = False, False, None
        for visitor in job.wanted:
            self._waiting.setdefault(visitor, deque()).appendleft(job)
        self._changed.notify()

    def _next(self, place: Place) -> Job | None:
        with self._changed:
            self._idle += 1
            there = self._changed.wait_for(lambda: self._waiting, IDLE)
            self._idle -= 1
            if not there:
                self._threads -= 1
                return None
            visitor = next(iter(self._waiting))
            jobs = self._waiting.pop(visitor)
            job = jobs.popleft()
            if jobs:
                self._waiting[visitor] = jobs  # behind all others
            for other in set(job.wanted):
                self._forget(other, job)
            job.begun, job.place = True, place
            return job
