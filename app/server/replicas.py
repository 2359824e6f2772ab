"""Replicas: several processes of the app behind one proxy, as started by ``attention-lab --replicas 2``.

One process has one Python interpreter, which runs one visitor's page at a time. A parent process imports and loads
everything. It then forks the replicas and one more process. That process forks the workers, which run long computations
for the replicas. The forks share the parent's memory. A process that dies is restarted within seconds.
"""

import contextlib
import ctypes
import logging
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from multiprocessing.context import ForkProcess
from pathlib import Path

from app.jobs.executors import worker_count
from app.server import malloc
from attention_core import workers

FOLDER = Path(__file__).parent
START_SECONDS = 120
"""Seconds after which a process that has not answered counts as failed: a cold disk and a busy machine take tens of
seconds."""
END_SECONDS = 10
"""Seconds that a terminated process has to end before it is killed."""


def configuration(ports: Sequence[int]) -> str:
    """Return the HAProxy configuration for replicas that listen on these ports of this machine."""
    template = (FOLDER / "haproxy.cfg").read_text("utf-8").rstrip().rpartition("\n")[0]
    return "\n".join([template, *(f"    server replica{port} 127.0.0.1:{port}" for port in ports), ""])


def serve(replicas: int, address: str, port: int, arguments: Sequence[str]) -> None:
    """Run replicas and proxy until a signal ends all of them, and restart processes that die.

    Args:
        replicas: number of replicas.
        address: address on which the proxy listens; empty for every address of this machine.
        port: port on which the proxy listens.
        arguments: arguments that each replica passes to ``streamlit run``.

    Raises:
        SystemExit: with an explanation, if the processes cannot start.
    """
    haproxy = shutil.which("haproxy", path=os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin")
    if haproxy is None:
        sys.exit("Several replicas need the proxy HAProxy: install it, on Debian or Ubuntu by apt-get install haproxy.")
    try:
        socket.create_server((address, port)).close()
    except OSError as error:
        sys.exit(f"The proxy cannot listen on port {port} ({error.strerror}): choose another with --port.")
    environment = {"STREAMLIT_SERVER_COOKIE_SECRET": secrets.token_hex()} | os.environ
    os.environ["STREAMLIT_SERVER_COOKIE_SECRET"] = environment["STREAMLIT_SERVER_COOKIE_SECRET"]
    environment["ATTENTION_LAB_BIND"] = f"{address}:{port}"
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit())
    ports = _free_ports(replicas)
    processes: dict[str, ForkProcess] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="attention-lab-") as folder:
            starts: dict[str, Callable[[], ForkProcess]] = {}
            if worker_count() and "ATTENTION_LAB_WORKERS_SOCKET" not in os.environ:
                path = Path(folder, "workers")
                environment["ATTENTION_LAB_WORKERS_SOCKET"] = os.environ["ATTENTION_LAB_WORKERS_SOCKET"] = str(path)
                starts["The workers' parent"] = partial(_start, partial(workers.serve, path, owned=False))
            _warm_up()
            config = Path(folder, "haproxy.cfg")
            config.write_text(configuration(ports), "utf-8")
            starts |= {f"Replica {p}": partial(_start, _replica, p, arguments) for p in ports}
            starts["The proxy"] = partial(_start, os.execve, haproxy, [haproxy, "-db", "-f", str(config)], environment)
            processes |= {name: start() for name, start in starts.items()}
            _wait_until_healthy(processes, [*(f"127.0.0.1:{p}" for p in ports), f"{address or '127.0.0.1'}:{port}"])
            print(f"{replicas} replicas of Attention Lab: http://{address or 'localhost'}:{port}", flush=True)
            while True:
                time.sleep(1)
                for name, process in processes.items():
                    if not process.is_alive():
                        print(
                            f"{name} ended with code {process.exitcode} and was restarted.", file=sys.stderr, flush=True
                        )
                        processes[name] = starts[name]()
    except KeyboardInterrupt:
        pass
    finally:
        _end(processes.values())


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


def _warm_up() -> None:
    """Load everything that replicas share, with one torch thread, because OpenMP threads would not survive the fork."""
    malloc.share_heap()  # This must precede the threads that load models, because it affects new threads only.
    from transformers.utils.logging import disable_progress_bar

    logging.disable(logging.WARNING)  # Streamlit warns about caches that are created outside a server, as here.
    from app.server.warmup import read_presets, warm_up
    from attention_core.errors import LabError
    from attention_core.inputs import models

    disable_progress_bar()  # The progress bar would start a thread, which would not survive the fork.
    threads = os.environ.get("ATTENTION_LAB_THREADS")
    os.environ["ATTENTION_LAB_THREADS"] = "1"
    for model in models.BUILT_IN:  # Replicas and workers share the models that are loaded here.
        with contextlib.suppress(LabError):
            models.load(model.key)
    warm_up()
    read_presets()
    os.environ.pop("ATTENTION_LAB_THREADS") if threads is None else os.environ.update(ATTENTION_LAB_THREADS=threads)
    logging.disable(logging.NOTSET)
    if threading.active_count() > 1:
        raise RuntimeError(f"A fork keeps one thread only, and there are {threading.enumerate()}.")


def _start(run: Callable[..., object], *arguments: object) -> ForkProcess:
    process = multiprocessing.get_context("fork").Process(target=_run, args=(run, *arguments))
    process.start()
    return process


def _run(run: Callable[..., object], *arguments: object) -> None:
    """Run a function in a child process that ends when its parent ends (on Linux, for any reason) and on SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: the signal to get when the parent ends
    run(*arguments)


def _replica(port: int, arguments: Sequence[str]) -> None:
    from app.server.command import streamlit

    os.environ["STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE"] = "true"  # The message shows an address behind the proxy.
    streamlit(["--server.address=127.0.0.1", f"--server.port={port}", "--server.headless=true", *arguments])


def _wait_until_healthy(processes: Mapping[str, ForkProcess], addresses: Sequence[str]) -> None:
    """Wait until every address reports that it is healthy.

    Raises:
        SystemExit: with an explanation, if a process has ended or does not answer in time.
    """
    deadline = time.monotonic() + START_SECONDS
    for address in addresses:
        while not _is_healthy(address):
            ended = [name for name, process in processes.items() if not process.is_alive()]
            if ended or time.monotonic() > deadline:
                sys.exit(f"{' and '.join(ended) or address} did not start; see the messages above.")
            time.sleep(0.2)


def _is_healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/_stcore/health", timeout=5) as answer:
            return answer.status == HTTPStatus.OK
    except OSError:
        return False


def _end(processes: Collection[ForkProcess]) -> None:
    """Terminate all processes, and kill those that have not ended after ``END_SECONDS``."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + END_SECONDS
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
        process.kill()
