"""A description of the machine that runs a benchmark (processor, memory, system, load), saved with the results."""

import datetime
import os
import platform
import time
from pathlib import Path


def machine() -> dict[str, str]:
    """Return the date and the machine's CPU, memory, system and load."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load at start": f"{os.getloadavg()[0]:.1f}",
    }


def pace() -> float:
    """Return the CPU milliseconds of 100,000 additions, which rise if other processes share the processor core."""
    start = time.process_time()
    sum(range(100_000))
    return 1000 * (time.process_time() - start)


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
