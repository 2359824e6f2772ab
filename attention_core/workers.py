"""Worker processes that run tasks, on Linux: a parent process with all modules loaded forks a worker per connection.

``python -m attention_core.workers PATH`` starts the parent. It imports all modules, loads the default model and
listens on the Unix socket PATH. Forking a worker takes some ten milliseconds, and the worker shares the parent's
memory except for the pages that it writes to.

A client sends messages over its connection. Each message is a pair of an experiment's name and a task, pickled twice.
A thread of the worker receives the messages and unpickles the outer bytes. The main thread unpickles the pair just
before it runs the task, so an error in unpickling the pair is answered like an error of the task. The worker answers
with pairs of a word and its content: ``("held", None)`` if the task has to wait for other tasks on the machine,
``("step", (done, total))`` for each reported step, and last ``("rows", rows)`` or ``("error", exception)``.

The worker ends immediately when the client closes the connection or dies, even during a task. Client and worker are
processes of the same user: no other user may open the socket.
"""

import argparse
import fcntl
import gc
import importlib
import os
import pickle
import pkgutil
import resource
import selectors
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

from tqdm import tqdm

from attention_core import claims, experiments, registry
from attention_core.errors import InputError, LabError
from attention_core.inputs import from_text
from attention_core.limits import current
from attention_core.runtime.devices import use_threads
from attention_core.runtime.execution import execute_here
from attention_core.runtime.progress import watched

QUEUE_BYTE, RUN_BYTE = 0, 1
"""Positions of two bytes in the lock file. A task locks the first while waiting, and the second while running."""
MEMORY_ERROR_TEXTS = ("can't allocate memory", "not enough memory", "out of memory")
"""Parts of torch's error messages where Python would raise ``MemoryError``."""


def serve(path: Path, *, owned: bool) -> None:
    """Fork a worker for every connection until the process is stopped.

    Args:
        path: the path of the socket; its folder must be closed to other users.
        owned: whether to stop when the standard input closes, as it does when the parent process ends.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended workers do not stay as zombies, though nothing calls ``wait``
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as ready:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o600)
        warm_up()
        listener.listen()  # only now: if the warm-up fails, clients must not already be connected
        ready.register(listener, selectors.EVENT_READ)
        if owned:
            ready.register(sys.stdin, selectors.EVENT_READ)
        while not any(key.fileobj is sys.stdin for key, _ in ready.select()):
            connection = listener.accept()[0]
            if not os.fork():
                ready.close()
                listener.close()
                run_tasks(connection)
            connection.close()
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()


def warm_up() -> None:
    """Import all that tasks need, load the default model and run it once, so that workers share this memory."""
    tqdm.monitor_interval = 0  # no monitor thread: workers would inherit its locks, but not the thread to release them
    use_threads()
    registry.all_variants()
    claims.discover()
    for module in pkgutil.iter_modules(experiments.__path__, f"{experiments.__name__}."):
        importlib.import_module(module.name)
    with suppress(LabError):  # if the model is not installed, tasks on synthetic input and uploads still run
        from_text("Every worker has read this.", model="minilm")
    gc.collect()
    gc.freeze()  # a collection in a worker would write to these objects, and so copy their memory pages


def run_tasks(connection: socket.socket) -> NoReturn:
    """Run tasks in this worker process until the connection is closed."""
    # The processes that draw pages have priority, and workers use the rest of the machine. A niceness value would not
    # be enough: whenever a page's thread wakes, dozens of times per run, a worker would keep the processor for some
    # milliseconds.
    with suppress(OSError):  # some containers forbid this
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    limit_memory(current().worker_bytes)
    tasks: SimpleQueue[bytes] = SimpleQueue()

    def read_tasks() -> None:
        try:
            with connection.makefile("rb") as stream:
                while True:
                    tasks.put(pickle.load(stream))
        finally:
            os._exit(0)  # ends the process even during a task, because no client waits for its result any more

    threading.Thread(target=read_tasks, daemon=True).start()

    def send(kind: str, content: object) -> None:
        connection.sendall(pickle.dumps((kind, content)))

    while True:
        pickled_task = tasks.get()
        try:
            experiment, task = pickle.loads(pickled_task)
            is_timed = getattr(task, "timed", False)
            with (
                machine_lock(exclusive=is_timed, on_wait=lambda: send("held", None)),
                watched(lambda *at: send("step", at)),
            ):
                rows = execute_here(experiment, task)
            send("rows", rows)
        except Exception as error:
            send("error", picklable_error(error))


def picklable_error(error: Exception) -> Exception:
    """Return an error that can be sent: a sentence for a memory error; any other error has its traceback as a note."""
    if isinstance(error, MemoryError) or any(words in str(error) for words in MEMORY_ERROR_TEXTS):
        most = current().worker_bytes / 2**30
        return InputError(
            "This computation would need more than {most:g} GiB of memory. Choose fewer tokens or a smaller input.",
            most=most,
        )
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(str(error))
    error.add_note(traceback.format_exc())
    return error


def limit_memory(most_bytes: int) -> None:
    """Limit the bytes that this process may allocate from now on, and let Linux kill it first if memory runs out.

    The limit is on the process's own writable memory, RLIMIT_DATA. If it is reached, torch and Python raise an
    error, and only the current task fails. A limit on addresses, RLIMIT_AS, would count mapped libraries and memory
    that allocators only reserve.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    used = next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:")), None)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    # If the existing hard limit is lower, it is left unchanged.
    if used is not None and (hard == resource.RLIM_INFINITY or used + most_bytes < hard):
        resource.setrlimit(resource.RLIMIT_DATA, (used + most_bytes, hard))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


@contextmanager
def machine_lock(*, exclusive: bool, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock of this machine until the ``with`` block ends: exclusive for a timed task, shared for others.

    All workers of this user on this machine share the lock, across servers. The system releases a dead worker's lock.

    Args:
        exclusive: whether the task is timed.
        on_wait: called when the task has to wait.
    """
    path = Path(tempfile.gettempdir()) / f"attention-lab-{os.getuid()}.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    lock_type = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        for byte in (QUEUE_BYTE, RUN_BYTE):
            try:
                fcntl.lockf(file, lock_type | fcntl.LOCK_NB, 1, byte)
            except OSError:
                on_wait()
                fcntl.lockf(file, lock_type, 1, byte)
        fcntl.lockf(file, fcntl.LOCK_UN, 1, QUEUE_BYTE)
        yield
    finally:
        os.close(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and serve; see ``serve``."""
    parser = argparse.ArgumentParser(
        prog="python -m attention_core.workers", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("path", type=Path, help="path of the Unix socket, in a folder that other users cannot open")
    parser.add_argument("--owned", action="store_true", help="end the process when the standard input is closed")
    args = parser.parse_args(arguments)
    serve(args.path, owned=args.owned)


if __name__ == "__main__":
    main()
