"""A description of this machine: its devices, its thread counts, and the stamp that is saved with each measurement."""

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
"""Largest number in a saved measurement: more than the bytes or multiply-adds of any machine."""
Whole = Annotated[int, Meta(ge=1, le=LARGEST)]
Text = Annotated[str, Meta(max_length=200)]


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """The machine and date of a measurement.

    Attributes:
        device: name of the processor or accelerator that computed.
        cpu: model of the processor.
        cores: logical cores available to torch.
        threads: threads used by torch.
        torch: version of torch.
        date: UTC, ``2026-01-31T12:00:00Z``.
    """

    device: Text
    cpu: Text
    cores: Whole
    threads: Whole
    torch: Text
    date: Text


def devices() -> tuple[str, ...]:
    """Return the devices that torch sees, the CPU first."""
    return DEVICES if torch.cuda.is_available() else DEVICES[:1]


def check_device(device: str) -> str:
    """Return the device if torch sees it.

    Raises:
        InputError: if torch does not see the device.
    """
    if device not in devices():
        raise InputError("The device {device!r} is not available. Choose {known}.", device=device, known=devices()[0])
    return device


def stamp(device: str, at: datetime | None = None) -> Stamp:
    """Return a stamp that describes this machine.

    Args:
        device: one of ``devices()``.
        at: the date, in UTC; None for now.
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
    """Return the processor's name as reported by the operating system."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine() or "unknown"


def use_threads() -> int:
    """Set the thread counts of torch and numpy from the variable ``ATTENTION_LAB_THREADS`` (default 1).

    Call it once, when a program starts. One thread is the default because a server answers several visitors at the same
    time on few cores, and threads that wait for each other on a busy machine are slower than a single one. With 200
    visitors on two cores, numpy's threads alone raised a visitor's wait from 0.5 s to 1.3 s.

    Returns:
        The thread count.

    Raises:
        SettingError: if the variable is not a whole number from 1 to the number of cores.
    """
    word, cores = os.environ.get("ATTENTION_LAB_THREADS", "1").strip(), os.cpu_count() or 1
    if not (word.isdecimal() and 1 <= int(word) <= cores):
        raise SettingError(
            "ATTENTION_LAB_THREADS is {value!r}. Set a whole number from 1 to {cores}.", value=word[:40], cores=cores
        )
    torch.set_num_threads(int(word))
    threadpool_limits(int(word), "blas")  # the threads of numpy; this limit lasts until it is set again
    return int(word)
