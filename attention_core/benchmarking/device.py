"""The machine: its devices, the threads it computes with, and the stamp that stays with a measurement's figures."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import torch
from msgspec import Meta
from threadpoolctl import threadpool_limits

from attention_core.errors import InputError, SettingError

DEVICES = ("cpu", "cuda")
LARGEST = 2**63 - 1
"""No number in a saved measurement exceeds it: more bytes and multiply-adds than any machine has."""
Whole = Annotated[int, Meta(ge=1, le=LARGEST)]
Text = Annotated[str, Meta(max_length=200)]


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """Where and when.

    Attributes:
        device: name of what computed: the processor's or the accelerator's.
        cpu: the processor's model.
        cores: logical cores torch could use.
        threads: threads torch did use.
        torch: torch's version.
        date: UTC, ``2026-01-31T12:00:00Z``.
    """

    device: Text
    cpu: Text
    cores: Whole
    threads: Whole
    torch: Text
    date: Text


def devices() -> tuple[str, ...]:
    """The devices torch sees here, the CPU first."""
    return DEVICES if torch.cuda.is_available() else DEVICES[:1]


def check_device(device: str) -> str:
    """The device, if torch sees it here.

    Raises:
        InputError: if it does not.
    """
    if device not in devices():
        raise InputError("Torch sees no device {device!r} here; choose {known}.", device=device, known=devices()[0])
    return device


def stamp(device: str, at: datetime | None = None) -> Stamp:
    """Describe this machine.

    Args:
        device: one of ``devices()``.
        at: when, in UTC; now when None.
    """
    cpu = cpu_model()
    return Stamp(
        device=torch.cuda.get_device_name() if device == "cuda" else cpu,
        cpu=cpu,
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        torch=torch.__version__,
        date=(at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def cpu_model() -> str:
    """The processor's name as the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine() or "unknown"


def use_threads() -> int:
    """Set torch's and numpy's thread counts from the variable ``ATTENTION_LAB_THREADS`` (1 where it is not set).

    Called once, when a program starts. One thread is the default because a server answers several people at once on
    few cores: threads that wait for one another on a busy machine are slower than one that does not wait. Of 200
    visitors on two cores, numpy's alone made one wait 1.3 s in place of 0.5.

    Returns:
        The thread count.

    Raises:
        SettingError: if the variable is no whole number from 1 to the number of cores.
    """
    word, cores = os.environ.get("ATTENTION_LAB_THREADS", "1").strip(), os.cpu_count() or 1
    if not (word.isdecimal() and 1 <= int(word) <= cores):
        raise SettingError(
            "ATTENTION_LAB_THREADS is {value!r}; give a whole number from 1 to {cores}.", value=word[:40], cores=cores
        )
    torch.set_num_threads(int(word))
    threadpool_limits(int(word), "blas")  # numpy's; stays so until it is called again
    return int(word)
