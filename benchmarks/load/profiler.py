"""A profile of the running app server: which parts of the code its threads spend their time in.

py-spy samples the stacks of the threads that hold Python's interpreter lock. Samples are summed by part of the code.
"""

import asyncio
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.load.results import Profile
from benchmarks.load.server import descendants
from benchmarks.load.tab import RefusedError

RATE = 50
"""Samples per second."""
LARGEST = 15
"""The number of functions listed."""

PARTS = {
    "collecting garbage after a run": r"^_?on_script_finished ",
    "watching files": r"/streamlit/watcher/|^file_is_in_folder_glob ",
    "compression": r"permessage_deflate|gzip",
    "attention: the core and torch": r"/attention_core/|/torch/|/transformers/",
    "figures": r"/plotly/|/PIL/|/app/figures/",
    "sending messages": r"/websockets/|/uvicorn/|/starlette/|/asyncio/|/streamlit/web/|/anyio/|/h11/",
    "hashing and queueing messages": r"/forward_msg_|/app_session\.py|/script_run_context\.py|/runtime/runtime\.py",
    "caches (keys and unpickling)": r"/streamlit/runtime/caching/",
    "widgets and their state": r"/streamlit/runtime/state/|/streamlit/elements/widgets/",
    "other elements": r"/streamlit/elements/|/streamlit/delta_generator|/streamlit/cursor",
    "the pages' own code": r"/app/|/pages/",
    "the rest of Streamlit": r"/streamlit/",
}
"""Parts of a run, each with a pattern for a frame's function and file. The innermost matching frame decides."""


async def watch(roots: Iterable[int], seconds: float, scenario: str) -> Profile:
    """Sample all Python processes of a server for some time.

    Args:
        roots: the server's processes; their descendants are included.
        seconds: the duration.
        scenario: the name of the running scenario.

    Raises:
        RefusedError: if py-spy is not installed or has no permission.
    """
    if (tool := shutil.which("py-spy")) is None:
        raise RefusedError("--profile needs py-spy: pip install --no-deps -r requirements-bench.txt.")
    pythons = [pid for pid in descendants(roots) if Path(f"/proc/{pid}/exe").resolve().name.startswith("python")]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{pid}.txt" for pid in pythons]
        options = [
            "--format=raw",
            "--full-filenames",
            "--gil",
            f"--rate={RATE}",
            f"--duration={max(1, round(seconds))}",
        ]
        samplers = [
            await asyncio.create_subprocess_exec(
                tool, "record", *options, f"--pid={pid}", f"--output={file}", stdout=-3, stderr=-3
            )
            for pid, file in zip(pythons, files, strict=True)
        ]
        await asyncio.gather(*(sampler.wait() for sampler in samplers))
        stacks: Counter[str] = Counter()
        for file in files:
            if not file.exists():
                raise RefusedError("py-spy may not look at the server: it needs the right to trace other processes.")
            for line in file.read_text().splitlines():
                stack, _, count = line.rpartition(" ")
                stacks[stack] += int(count)
    return summary(stacks, scenario, seconds)


def summary(stacks: Mapping[str, int], scenario: str, seconds: float) -> Profile:
    """Return which fractions of the samples are in each part of the software (``PARTS``) and in each function.

    Args:
        stacks: samples by stack: its frames from the outermost, ``function (file:line)``, separated by semicolons.
        scenario: the name of the scenario.
        seconds: the duration of sampling.
    """
    parts: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for stack, count in stacks.items():
        frames = stack.split(";")
        parts[_part(frames)] += count
        functions[_short(frames[-1])] += count
    total = max(1, sum(parts.values()))
    return Profile(
        scenario=scenario,
        seconds=seconds,
        busy=round(total / (seconds * RATE), 3),
        parts={part: round(count / total, 4) for part, count in parts.most_common()},
        functions={name: round(count / total, 4) for name, count in functions.most_common(LARGEST)},
    )


def _part(frames: list[str]) -> str:
    for frame in reversed(frames):
        for part, pattern in PARTS.items():
            if re.search(pattern, frame):
                return part
    return "the rest of Python"


def _short(frame: str) -> str:
    function, _, place = frame.partition(" (")
    return f"{function} ({'/'.join(place.rpartition(':')[0].split('/')[-2:])})"
