"""Where tasks run: in workers that a warm process forks, on a Dask cluster, or in threads of this process."""

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
from pathlib import Path
from typing import Any

from app.jobs.fair_lock import FairLock
from app.jobs.scheduler import Place
from attention_core.errors import LabError, SettingError, WorkerError
from attention_core.experiments.task import Load, Task
from attention_core.formatting import N_
from attention_core.limits import current
from attention_core.runtime.execution import execute, execute_here
from attention_core.runtime.progress import Told, watched

PATIENCE = 120.0
"""Seconds until a process that forks workers for several servers must listen: it imports torch and a model first."""
REACH = 5.0
"""Seconds until a cluster must answer."""
LOST = N_(
    "The worker process ended unexpectedly, perhaps because memory ran out. Try again, or choose a smaller input."
)
"""For a worker that died at work, and for nothing else: every other cause has a sentence of its own."""
BROKEN = N_(
    "The worker processes of this server cannot start; its log says why. Restarted with ATTENTION_LAB_WORKERS=0, it "
    "computes without them."
)
ABSENT = N_(
    "No process listens at ATTENTION_LAB_WORKERS_SOCKET. Start python -m attention_core.workers with that path, then "
    "try again."
)
SCHEDULER = N_(
    "No Dask scheduler answers at the address in ATTENTION_LAB_SCHEDULER; start it and try again, or unset "
    "the variable."
)


def worker_count() -> int:
    """Worker processes, from the environment variable ``ATTENTION_LAB_WORKERS``; 0 where tasks run in this process.

    Raises:
        SettingError: if it is no whole number up to 64.
    """
    word = os.environ.get("ATTENTION_LAB_WORKERS", "").strip()
    if not word:
        return current().heavy_jobs if sys.platform == "linux" else 0
    if not (word.isdecimal() and int(word) <= 64):
        raise SettingError("ATTENTION_LAB_WORKERS is {value!r}; give a whole number from 0 to 64.", value=word[:40])
    if int(word) and sys.platform != "linux":
        raise SettingError("Worker processes need Linux; set ATTENTION_LAB_WORKERS to 0.")
    return int(word)


class Workers:
    """Workers on this machine.

    Args:
        count: how many.
        path: the socket of a process that forks them for several servers; None for one of this server's own.
    """

    def __init__(self, count: int, path: Path | None = None) -> None:
        self._count, self._path, self.abreast = count, path, count + 1
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def places(self) -> int:
        """As many as there are workers."""
        return self._count

    def place(self) -> "Worker":
        """A worker, not yet begun."""
        return Worker(self.connect)

    def start(self) -> Path:
        """Begin the process that forks workers, if that is this server's and does not run, and tell its socket."""
        if self._path is not None:
            return self._path
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._folder = tempfile.TemporaryDirectory(prefix="attention-lab-")
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "attention_core.workers", self._folder.name + "/workers", "--owned"],
                    stdin=subprocess.PIPE,  # its end is this server's
                )
            return Path(self._folder.name, "workers")

    def connect(self) -> socket.socket:
        """Return a connection to a new worker.

        Waits until the process that forks workers listens: as long as it lives if it is this server's own, ``PATIENCE``
        seconds otherwise.

        Raises:
            WorkerError: if that process ends before it listens, or does not listen in time.
        """
        path, until = self.start(), time.monotonic() + PATIENCE
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(path))
            except OSError:  # it does not listen yet
                connection.close()
                if self._process is not None and self._process.poll() is not None:
                    raise WorkerError(BROKEN) from None
                if self._process is None and time.monotonic() > until:
                    raise WorkerError(ABSENT) from None
                time.sleep(0.05)
            else:
                return connection


class Worker:
    """A worker process, begun with its first task.

    Args:
        connect: makes a connection to a new one.
    """

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._connection: socket.socket | None = None
        self._ended = False

    def run(self, experiment: str, task: Task, held: Callable[[], None], told: Told) -> tuple[Any, ...]:
        """Send the task, and wait for its rows.

        Raises:
            LabError: if it cannot be run.
            WorkerError: if the worker died.
        """
        if self._ended:
            self.close()
        if self._connection is None:
            self._connection = self._connect()
        try:
            if self._ended:  # while it was begun
                raise EOFError
            # Bytes in bytes: a task that the worker cannot read leaves the stream between them whole.
            self._connection.sendall(pickle.dumps(pickle.dumps((experiment, task))))
            with self._connection.makefile("rb") as stream:
                kind, about = pickle.load(stream)
                while kind in ("held", "step"):
                    if kind == "held":
                        held()
                    else:
                        told(*about)
                    kind, about = pickle.load(stream)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.close()
            raise WorkerError(LOST) from None
        if kind == "error":
            raise about
        rows: tuple[Any, ...] = about
        return rows

    def end(self) -> bool:
        """Hang up: the worker ends at once, and its successor is begun with the next task."""
        self._ended = True
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        return True

    def close(self) -> None:
        """Let the worker end."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._ended = None, False


class Cluster:
    """Workers of a Dask cluster, wherever they are.

    Args:
        address: of its scheduler.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None
        self._lock = threading.Lock()

    @property
    def abreast(self) -> int:
        """As many as run at once, and one more."""
        return self.places() + 1

    def places(self) -> int:
        """Threads of all its workers.

        Raises:
            WorkerError: if the scheduler does not answer.
            SettingError: if Dask is not installed.
        """
        return max(1, sum(self.client().nthreads().values()))

    def client(self) -> Any:  # noqa: ANN401 - Dask is not installed everywhere
        """The connection to the scheduler; errors as of ``places``."""
        with self._lock:
            if self._client is None or self._client.status != "running":
                try:
                    from distributed import Client
                except ImportError:
                    raise SettingError(
                        "ATTENTION_LAB_SCHEDULER needs Dask: pip install attention-lab[cluster]."
                    ) from None
                try:
                    self._client = Client(self._address, timeout=REACH, set_as_default=False)
                except (OSError, ValueError):
                    raise WorkerError(SCHEDULER) from None
            return self._client

    def place(self) -> Place:
        """One task under way on the cluster."""
        return OnCluster(self)


class OnCluster:
    """One task at a time on a cluster, which chooses the worker, and another where that one is lost."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._future: Any = None

    def run(self, experiment: str, task: Task, held: Callable[[], None], told: Told) -> tuple[Any, ...]:
        """Send the task, and wait for its rows; of its steps a cluster tells nothing.

        Raises:
            LabError: if it cannot be run.
            WorkerError: if worker after worker died of it, or the scheduler did.
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
                raise WorkerError(LOST) from error
            if isinstance(error, CancelledError | CommClosedError | TimeoutError):
                raise WorkerError(SCHEDULER) from error
            raise
        finally:
            self._future = None  # the cluster keeps what is referred to
        return rows

    def end(self) -> bool:
        """Take the task back; where it has begun, it runs to its end and its rows are dropped."""
        if future := self._future:
            future.cancel(force=True)
        return True

    def close(self) -> None:
        """Nothing is held."""


class Here:
    """In threads of this process, which cannot step back behind the pages.

    What is timed has the machine to itself as far as this process goes; heavy work that waits passes between two of
    them.

    Args:
        gate: before all heavy work of this process.
        load: turns a source into a record.
    """

    abreast = 1

    def __init__(self, gate: FairLock, load: Load) -> None:
        self._gate, self._load = gate, load

    def places(self) -> int:
        """As many as the gate lets through."""
        return current().heavy_jobs

    def place(self) -> "InThread":
        """One task under way."""
        return InThread(self._gate, self._load)


class InThread:
    """One task at a time in a thread of this process, which cannot be ended, but is asked to stop.

    Args:
        gate: as of ``Here``.
        load: likewise.
    """

    def __init__(self, gate: FairLock, load: Load) -> None:
        self._gate, self._load = gate, load
        self._stop = threading.Event()

    def run(self, experiment: str, task: Task, held: Callable[[], None], told: Told) -> tuple[Any, ...]:
        """Run a task when it is its turn.

        Raises:
            LabError: if it cannot be run.
            StoppedError: if it was asked to stop, and looked whether it was.
        """
        turn = self._gate.alone() if getattr(task, "timed", False) else self._gate.turn()
        try:
            with turn, watched(told, self._stop.is_set):
                return execute(experiment, task, self._load)
        finally:
            self._stop.clear()

    def end(self) -> bool:
        """Ask it to stop at its next step; what has none goes on to its end."""
        self._stop.set()
        return False

    def close(self) -> None:
        """Nothing is held."""
