"""Three ways to run the tasks of a long computation: in worker processes, on a Dask cluster, or in threads.

Workers are forked from a process that has already imported everything they need.
"""

import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from app.jobs.fair_lock import FairLock
from app.jobs.scheduler import Slot
from attention_core.errors import LabError, SettingError, WorkerError
from attention_core.experiments.task import Load, Task
from attention_core.formatting import N_
from attention_core.limits import current
from attention_core.runtime.execution import execute, execute_here
from attention_core.runtime.progress import ProgressCallback, watched

MALLOC_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**26)}
"""Environment of worker processes: glibc keeps up to 64 MiB of freed memory, and arrays up to 32 MiB on the heap.

By default, it returns arrays of some MiB to the system and maps their pages again. A training step of a tiny model with
softmax then takes 33 instead of 23 ms (medians of two runs, one thread)."""
CONNECT_SECONDS = 120.0
"""Seconds to wait for a shared forking process to listen: it imports torch and a model first."""
CLUSTER_SECONDS = 5.0
"""Seconds to wait for a cluster's answer."""
WORKER_LOST = N_(
    "The worker process ended unexpectedly, perhaps because memory ran out. Try again, or choose a smaller input."
)
"""The message for a worker that died during a task. Errors with other causes have their own messages."""
WORKERS_CANNOT_START = N_(
    "The worker processes of this server cannot start. The server's log shows the reason. To compute without worker "
    "processes, restart the server with ATTENTION_LAB_WORKERS=0."
)
NO_WORKERS_SOCKET = N_(
    "No process listens at the path in ATTENTION_LAB_WORKERS_SOCKET. Start python -m attention_core.workers with this "
    "path, then try again."
)
NO_DASK_SCHEDULER = N_(
    "No Dask scheduler answers at the address in ATTENTION_LAB_SCHEDULER. Start the scheduler and try again, or unset "
    "the variable."
)


def worker_count() -> int:
    """Return the number of worker processes, from ``ATTENTION_LAB_WORKERS``; 0 if tasks run in this process.

    Raises:
        SettingError: if the variable is not a whole number up to 64.
    """
    value = os.environ.get("ATTENTION_LAB_WORKERS", "").strip()
    if not value:
        return current().heavy_jobs if sys.platform == "linux" else 0
    if not (value.isdecimal() and int(value) <= 64):
        raise SettingError("ATTENTION_LAB_WORKERS is {value!r}; give a whole number from 0 to 64.", value=value[:40])
    if int(value) and sys.platform != "linux":
        raise SettingError("Worker processes need Linux; set ATTENTION_LAB_WORKERS to 0.")
    return int(value)


class WorkerExecutor:
    """An executor that runs tasks in worker processes on this machine.

    Args:
        count: the number of workers.
        path: the socket of a process that forks workers for several servers; None to start one for this server.
    """

    def __init__(self, count: int, path: Path | None = None) -> None:
        self._count, self._path, self.max_in_flight = count, path, count + 1
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def slot_count(self) -> int:
        """Return the number of workers."""
        return self._count

    def new_slot(self) -> "Worker":
        """Return a worker, which starts with its first task."""
        return Worker(self.connect)

    def start(self) -> Path:
        """Return the socket of the forking process. Start that process if it is the server's own and not running."""
        if self._path is not None:
            return self._path
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._folder = tempfile.TemporaryDirectory(prefix="attention-lab-")
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "attention_core.workers", self._folder.name + "/workers", "--owned"],
                    env={**MALLOC_ENVIRONMENT, **os.environ},
                    stdin=subprocess.PIPE,  # The pipe closes when this server ends, which ends the process.
                )
            return Path(self._folder.name, "workers")

    def connect(self) -> socket.socket:
        """Return a connection to a new worker.

        Waits until the process that forks workers listens. For a process shared by several servers, the wait ends after
        ``CONNECT_SECONDS``.

        Raises:
            WorkerError: if this server's own process ends before it listens, or a shared one does not listen in time.
        """
        path, deadline = self.start(), time.monotonic() + CONNECT_SECONDS
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(path))
            except OSError:  # The process that forks workers does not listen yet.
                connection.close()
                if self._process is not None and self._process.poll() is not None:
                    raise WorkerError(WORKERS_CANNOT_START) from None
                if self._process is None and time.monotonic() > deadline:
                    raise WorkerError(NO_WORKERS_SOCKET) from None
                time.sleep(0.05)
            else:
                return connection


class Worker(Slot):
    """A worker process, started with its first task.

    Args:
        connect: opens a connection to a new worker.
    """

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._connection: socket.socket | None = None
        self._ended = False

    def run(
        self, experiment: str, task: Task, on_wait: Callable[[], None], on_step: ProgressCallback
    ) -> tuple[Any, ...]:
        """Send the task to the worker, and return its rows.

        Raises:
            LabError: if the task cannot be run.
            WorkerError: if the worker died.
        """
        if self._ended:
            self.close()
        if self._connection is None:
            self._connection = self._connect()
        try:
            if self._ended:  # Another thread called ``end`` while this thread connected to the worker.
                raise EOFError
            # The task is pickled twice. The worker can then always read a whole message from the stream, even if it
            # cannot unpickle the task inside the message.
            self._connection.sendall(pickle.dumps(pickle.dumps((experiment, task))))
            with self._connection.makefile("rb") as stream:
                kind, payload = pickle.load(stream)
                while kind in ("held", "step"):
                    if kind == "held":
                        on_wait()
                    else:
                        on_step(*payload)
                    kind, payload = pickle.load(stream)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.close()
            raise WorkerError(WORKER_LOST) from None
        if kind == "error":
            raise payload
        rows: tuple[Any, ...] = payload
        return rows

    def end(self) -> bool:
        """End the worker immediately by closing its connection, and return True. The next task starts a new worker."""
        self._ended = True
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        return True

    def close(self) -> None:
        """Close the connection, so that the worker ends."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._ended = None, False


class ClusterExecutor:
    """An executor that runs tasks on the workers of a Dask cluster, on any machine.

    Args:
        address: the address of the cluster's scheduler.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None
        self._lock = threading.Lock()

    @property
    def max_in_flight(self) -> int:
        """The number of tasks that run at a time, plus one."""
        return self.slot_count() + 1

    def slot_count(self) -> int:
        """Return the number of threads of all workers.

        Raises:
            WorkerError: if the scheduler does not answer.
            SettingError: if Dask is not installed.
        """
        return max(1, sum(self.client().nthreads().values()))

    def client(self) -> Any:  # noqa: ANN401 - Dask is an optional package
        """Return the connection to the scheduler; errors are as in ``slot_count``."""
        with self._lock:
            if self._client is None or self._client.status != "running":
                try:
                    from distributed import Client
                except ImportError:
                    raise SettingError(
                        "ATTENTION_LAB_SCHEDULER needs Dask: pip install attention-lab[cluster]."
                    ) from None
                try:
                    self._client = Client(self._address, timeout=CLUSTER_SECONDS, set_as_default=False)
                except (OSError, ValueError):
                    raise WorkerError(NO_DASK_SCHEDULER) from None
            return self._client

    def new_slot(self) -> Slot:
        """Return a slot that runs one task at a time on the cluster."""
        return ClusterSlot(self)


class ClusterSlot(Slot):
    """A slot that runs one task at a time on a cluster. The cluster chooses the worker, and replaces a lost one."""

    def __init__(self, cluster: ClusterExecutor) -> None:
        self._cluster = cluster
        self._future: Any = None

    def run(
        self, experiment: str, task: Task, on_wait: Callable[[], None], on_step: ProgressCallback
    ) -> tuple[Any, ...]:
        """Send the task, and return its rows. A cluster does not report the steps of a task.

        Raises:
            LabError: if the task cannot be run.
            WorkerError: if the task killed several workers, or the scheduler was lost.
        """
        self._future = self._cluster.client().submit(execute_here, experiment, task, pure=False)
        try:
            rows: tuple[Any, ...] = self._future.result()
        except LabError:
            raise
        except Exception as error:
            from distributed import CancelledError, KilledWorker
            from distributed.comm import CommClosedError

            if isinstance(error, KilledWorker):
                raise WorkerError(WORKER_LOST) from error
            if isinstance(error, CancelledError | CommClosedError | TimeoutError):
                raise WorkerError(NO_DASK_SCHEDULER) from error
            raise
        finally:
            self._future = None  # The cluster keeps a result in memory as long as a future refers to it.
        return rows

    def end(self) -> bool:
        """Cancel the task, and return True. A task that has started runs to its end, and its rows are discarded."""
        if future := self._future:
            future.cancel(force=True)
        return True


@dataclass(frozen=True, eq=False)
class ThreadExecutor:
    """An executor that runs tasks in threads of this process, with the same priority as the pages.

    Timed tasks run alone in this process. Heavy work that is waiting runs between two timed tasks.

    Attributes:
        gate: the lock for all heavy work of this process.
        load: turns a source into a record.
    """

    gate: FairLock
    load: Load
    max_in_flight: ClassVar[int] = 1

    def slot_count(self) -> int:
        """Return the number of heavy computations that the lock admits at a time."""
        return current().heavy_jobs

    def new_slot(self) -> "ThreadSlot":
        """Return a slot that runs one task at a time."""
        return ThreadSlot(self)


class ThreadSlot(Slot):
    """A slot that runs one task at a time in a thread of this process. A thread can only be asked to stop."""

    def __init__(self, executor: "ThreadExecutor") -> None:
        self._executor = executor
        self._stop = threading.Event()

    def run(
        self, experiment: str, task: Task, on_wait: Callable[[], None], on_step: ProgressCallback
    ) -> tuple[Any, ...]:
        """Run a task once the lock admits it, and return its rows.

        Raises:
            LabError: if the task cannot be run.
            StoppedError: if the task was asked to stop and has ended at one of its steps.
        """
        gate = self._executor.gate
        turn = gate.exclusive() if getattr(task, "timed", False) else gate.acquired()
        try:
            with turn, watched(on_step, self._stop.is_set):
                return execute(experiment, task, self._executor.load)
        finally:
            self._stop.clear()

    def end(self) -> bool:
        """Ask the task to stop at its next step, and return False. A task without steps runs to its end."""
        self._stop.set()
        return False
