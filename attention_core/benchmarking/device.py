"""The stamp that is saved with each measurement: a description of the machine, and the date."""

import os
import platform
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import torch
from msgspec import Meta

MAX_NUMBER = 2**63 - 1
"""Largest number in a saved measurement: more than the bytes or multiply-adds of any machine."""
PositiveInt = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
ShortText = Annotated[str, Meta(max_length=200)]


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

    device: ShortText
    cpu: ShortText
    cores: PositiveInt
    threads: PositiveInt
    torch: ShortText
    date: ShortText


def stamp(device: str, date: datetime | None = None) -> Stamp:
    """Return a stamp that describes this machine.

    Args:
        device: one of ``devices()``.
        date: the date, in UTC; None for now.
    """
    cpu = cpu_model()
    return Stamp(
        device=torch.cuda.get_device_name() if device == "cuda" else cpu,
        cpu=cpu,
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),  # msgspec cannot encode torch's own class of strings
        date=(date or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


FILLERS = re.compile(r"\((?:R|TM)\)|\b(?:CPU|Processor)\b|@.*")
"""Parts of a processor's name that do not identify it: trademarks, the word for a processor, and its frequency."""


def cpu_model() -> str:
    """Return the processor's name as reported by the operating system, without ``FILLERS``."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    name = next(names, "") or platform.processor() or platform.machine()
    return " ".join(FILLERS.sub(" ", name).split()) or "unknown"
