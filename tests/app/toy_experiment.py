"""A toy experiment for the tests of worker processes, which import this module to unpickle its tasks."""

import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from attention_core.errors import InputError
from attention_core.inputs import Source
from attention_core.workers import limit_memory


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A task for a worker: the name of a function below, its arguments, and a file for the process id."""

    what: str
    i: int = 0
    seconds: float = 0.0
    mark: Path | None = None
    source: Source | None = None
    timed: bool = False


def square(task, load):
    return (task.i**2,)


def sleep(task, load):
    start = time.monotonic()
    time.sleep(task.seconds)
    return os.getpid(), start, time.monotonic()


def compute(task, load):
    """Hold the interpreter's lock for ``task.seconds`` and return the process id."""
    until = time.monotonic() + task.seconds
    while time.monotonic() < until:
        sum(range(1000))
    return (os.getpid(),)


def page_faults(task, load):
    """Return how many memory pages the process maps while it allocates and frees 8 arrays of 2 MiB, twenty times."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        [np.ones(2**18) for _ in range(8)]
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before,)


def die(task, load):
    os.kill(os.getpid(), signal.SIGKILL)


def fill(task, load):
    torch.empty(2**33) if task.i else np.empty(2**32)  # 32 GiB that are allocated, but not written


def open_missing(task, load):
    return (Path("/no/such/file").read_text(),)


def unsendable(task, load):
    return (lambda: None,)


def hard_limit(task, load):
    """Return whether a worker starts under the host's hard memory limit, and whether that limit is kept."""
    resource.setrlimit(resource.RLIMIT_DATA, (2**36, 2**36))
    limit_memory(2**30)
    lower = resource.getrlimit(resource.RLIMIT_DATA)[0] < 2**36
    limit_memory(2**40)
    return lower, resource.getrlimit(resource.RLIMIT_DATA)[1] == 2**36


def describe(task, load):
    score = Path("/proc/self/oom_score_adj").read_text().strip()
    return os.getpid(), os.sched_getscheduler(0), torch.get_num_threads(), score


def read(task, load):
    return load(task.source).q.numpy().tobytes(), load(task.source) is load(task.source)


def refuse(task, load):
    raise InputError("There is no {what}.", what="{such}")


def fail(task, load):
    raise ZeroDivisionError("a bug")


def run(task, *, load):
    if task.mark:
        task.mark.with_suffix(".new").write_text(str(os.getpid()))
        task.mark.with_suffix(".new").rename(task.mark)
    return globals()[task.what](task, load)


sys.modules["attention_core.experiments.trial"] = sys.modules[__name__]
