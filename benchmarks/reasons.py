"""Explains why cases missed their targets: the time of each operator, and the tensors alive at the memory peak."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from attention_core.benchmarking.counting import largest_live_tensors
from attention_core.benchmarking.timing import Backward
from benchmarks.peers.adaptor import quietly
from benchmarks.rows import MODES, Record
from benchmarks.subjects import Call
from benchmarks.targets import Figure, verdicts

LONGEST = 0.5
"""Seconds. A case with longer calls is profiled at a smaller size that missed the target, if there is one."""
NAMED = 3
"""The number of operators listed."""

Build = Callable[[str, int], Call]
"""A function from a case's label and a number of tokens to the call that was timed."""


def explain(record: Record, build: Build, say: Callable[[str], None]) -> None:
    """Add to the record, for each case that missed a target, what takes its time or its memory at one size.

    For time, these are the operators and their shares of it; for memory, the largest tensors.

    Args:
        record: the measured record, judged by its preset.
        build: builds a case's call again.
        say: receives progress messages.
    """
    durations = {(r.label, r.n): min(r.seconds) for r in record.rows if r.role == "variant" and r.seconds}
    missed = [
        figure for mode in MODES for verdict in verdicts(record, mode) for figure in verdict.figures if not figure.met
    ]
    torch.set_num_threads(1)
    with torch.no_grad(), quietly():
        for case, n in _chosen((f for f in missed if f.timed), durations):
            say(f"profiling {case} at {n}")
            call = build(case, n)
            record.profiles[f"{case} at {n}"] = shares(call.backward_only() if isinstance(call, Backward) else call)
        for case, n in _chosen((f for f in missed if not f.timed), durations):
            say(f"what {case} holds at {n}")
            record.held[f"{case} at {n}"] = largest_live_tensors(build(case, n))


def shares(call: Call) -> dict[str, float]:
    """Return the operators with the most CPU time of their own in a call, as fractions of its time, largest first."""
    call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    own = {each.key.removeprefix("aten::"): each.self_cpu_time_total for each in profile.key_averages()}
    total = sum(own.values())
    return {name: round(own[name] / total, 3) for name in sorted(own, key=own.__getitem__, reverse=True)[:NAMED]}


def _chosen(figures: Iterator[Figure], durations: Mapping[tuple[str, int], float]) -> Iterator[tuple[str, int]]:
    """Yield each case with the largest of its sizes at which a call is short, or with its smallest size."""
    sizes: dict[str, Sequence[int]] = {}
    for figure in figures:
        sizes[figure.case] = sorted({*sizes.get(figure.case, ()), figure.n})
    for case, lengths in sizes.items():
        short = [n for n in lengths if durations.get((case, n), LONGEST) < LONGEST]
        yield case, (short or lengths[:1])[-1]
