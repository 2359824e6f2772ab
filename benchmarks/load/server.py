"""The server under test: its processes, and their memory, CPU time and open files as counted by Linux."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2

from benchmarks.load.results import Process
from benchmarks.load.tab import RefusedError

TICKS = os.sysconf("SC_CLK_TCK")
WARM = 180
"""Seconds to wait until a server's health check succeeds."""
CGROUPS = (
    (Path("/sys/fs/cgroup/cpu"), {"cpu.cfs_period_us": "{period}", "cpu.cfs_quota_us": "{quota}"}),
    (Path("/sys/fs/cgroup"), {"cpu.max": "{quota} {period}"}),
)
"""Where Linux limits the CPU time of a group of processes: the files of versions 1 and 2, and what to write."""
CGROUP_PERIOD = 10_000
"""Microseconds after which a throttled group may run again: short, so that no answer waits long for it."""


@contextmanager
def started(command: str, address: str, log: Path) -> Iterator[int]:
    """Start a server, wait until it is healthy, and end it with all its descendants after the block.

    Args:
        command: the command, run without a shell; ``{port}`` is replaced by the address's port.
        address: the address at which the server listens.
        log: the file for its output.

    Yields:
        The server's process identifier.

    Raises:
        RefusedError: if the address is already in use, or the server does not start.
    """
    if healthy(address):
        raise RefusedError(f"Something answers at {address} already: stop it, or measure it with --url.")
    words = shlex.split(command.format(port=address.rpartition(":")[2]))
    search_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"ATTENTION_LAB_PROFILE": "hosted", **os.environ, "PATH": search_path}
    with log.open("w") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + WARM
        while not healthy(address):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RefusedError(f"The server did not start: see {log}.")
            time.sleep(0.2)
        yield process.pid
    finally:
        family = descendants([process.pid])
        for end in (signal.SIGTERM, signal.SIGKILL):
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, end)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)


@contextmanager
def limited_cores(share: float) -> Iterator[None]:
    """Limit this process, and the processes that it starts, to a share of all cores, as on a slower machine.

    Args:
        share: the share; 1 for no limit.

    Raises:
        RefusedError: if Linux does not allow it; this needs root.
    """
    if share == 1:
        yield
        return
    quota = round(share * CGROUP_PERIOD * len(os.sched_getaffinity(0)))
    root, files = next((each for each in CGROUPS if (each[0] / "cgroup.procs").exists()), (None, {}))
    try:
        if root is None:
            raise OSError("there are no control groups")
        group = root / f"attention-lab-{os.getpid()}"
        group.mkdir(exist_ok=True)
        for name, value in files.items():
            (group / name).write_text(value.format(period=CGROUP_PERIOD, quota=quota))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        raise RefusedError(
            f"The cores cannot be limited ({error}). Run this as root on Linux, or leave out --share."
        ) from None
    try:
        yield
    finally:
        (root / "cgroup.procs").write_text(str(os.getpid()))
        with suppress(OSError):  # A killed server may still be ending. A group without processes limits nothing.
            group.rmdir()


def healthy(address: str) -> bool:
    """Return whether a server's health check succeeds."""
    with suppress(httpx2.HTTPError, OSError):
        return httpx2.get(f"{address}/_stcore/health", timeout=2, trust_env=False).status_code == 200
    return False


def descendants(roots: Iterable[int]) -> list[int]:
    """Return the running processes among the given ones and all their descendants."""
    children = defaultdict(list)
    for each in Path("/proc").iterdir():
        if each.name.isdecimal() and (fields := _stat(int(each.name))):
            children[int(fields[1])].append(int(each.name))
    running, waiting = [], [pid for pid in roots if _stat(pid)]
    while waiting:
        pid = waiting.pop()
        running.append(pid)
        waiting += children[pid]
    return running


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/<pid>/stat`` from the third on (state, parent, ...); empty for an ended process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def clocks(roots: Iterable[int]) -> dict[int, float]:
    """Return the CPU seconds of running processes and their descendants, by process id, to the nanosecond."""
    seconds = {}
    for pid in descendants(roots):
        with suppress(OSError):
            # Linux derives the id of a process's CPU clock from the process id in this way, see clock_getcpuclockid(3).
            seconds[pid] = time.clock_gettime(~pid << 3 | 2)
    return seconds


def has_idle_priority(pid: int) -> bool:
    """Return whether a process has the idle scheduling policy, as worker processes do."""
    with suppress(ProcessLookupError):
        return os.sched_getscheduler(pid) == os.SCHED_IDLE
    return False


class Watch:
    """Repeated measurements of a server's processes.

    Attributes:
        over_time: seconds since the start, bytes of memory and open file descriptors, for each measurement.
    """

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = list(roots)
        self._began = time.monotonic()
        self._names: dict[int, str] = {}
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._most: dict[str, tuple[int, int]] = {}
        self.over_time: list[tuple[float, int, int]] = []

    def measure(self) -> None:
        """Measure all processes once."""
        total, files = 0, 0
        memory: dict[str, list[int]] = defaultdict(list)
        for pid in descendants(self._roots):
            with suppress(OSError):
                name = self._names.setdefault(pid, _name(pid))
                pss = _pss(pid)
                files += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - only their number
                cpu = _own_cpu_seconds(pid)
                # CPU time from before the first measurement is not caused by visitors, so it is stored here and
                # subtracted later. A process that appears in a later measurement started during the run, so nothing is
                # subtracted.
                self._first.setdefault(pid, 0.0 if self.over_time else cpu)
                self._last[pid] = cpu
                memory[name].append(pss)
                total += pss
        for name, sizes in memory.items():
            count, most = self._most.get(name, (0, 0))
            self._most[name] = max(count, len(sizes)), max(most, sum(sizes))
        self.over_time.append((round(time.monotonic() - self._began, 1), total, files))

    def processes(self) -> list[Process]:
        """Return the processes by name, those with the most CPU time first."""
        cpu: dict[str, float] = defaultdict(float)
        for pid, name in self._names.items():
            cpu[name] += self._last.get(pid, 0.0) - self._first.get(pid, 0.0)
        rows = [Process(name, count, round(cpu[name], 2), most) for name, (count, most) in self._most.items()]
        return sorted(rows, key=lambda each: -each.cpu)


def _own_cpu_seconds(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:13])) / TICKS


def _pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _name(pid: int) -> str:
    """Return a name of at most two words: the command or script of a process, and its first argument."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    names = [Path(word).name for word in words[0].split()[:2] + words[1:] if word and not word.startswith("-")]
    if names and names[0].startswith("python"):
        names = names[1:] or names
    return " ".join(names[:2])[:40] or Path(f"/proc/{pid}/comm").read_text().strip()
