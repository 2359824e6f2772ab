"""Why a target is missed, measured in the same run: where the time goes by operator, what is held at the peak."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from attention_core.benchmarking.counting import held
from attention_core.benchmarking.timing import Backward
from benchmarks.peers.adaptor import quietly
from benchmarks.rows import MODES, Record
from benchmarks.subjects import Call
from benchmarks.targets import Figure, verdicts

LONGEST = 0.5
"""Seconds: what takes longer is looked at where fewer tokens missed the target, if they did."""
NAMED = 3
"""Operators that are named."""

Build = Callable[[str, int], Call]
"""A case's label and a number of tokens to the call that was timed."""


def explain(record: Record, build: Build, say: Callable[[str], None]) -> None:
    """Fill in the record's profiles and what is held, for each case that missed a target, at one size.

    Args:
        record: what was measured, judged by its preset.
        build: makes a case's call anew.
        say: told what is being done.
    """
    took = {(r.label, r.n): min(r.seconds) for r in record.rows if r.role == "variant" and r.seconds}
    missed = [
        figure for mode in MODES for verdict in verdicts(record, mode) for figure in verdict.figures if not figure.met
    ]
    torch.set_num_threads(1)
    with torch.no_grad(), quietly():
        for case, n in _chosen((f for f in missed if f.timed), took):
            say(f"profiling {case} at {n}")
            call = build(case, n)
            record.profiles[f"{case} at {n}"] = shares(call.alone() if isinstance(call, Backward) else call)
        for case, n in _chosen((f for f in missed if not f.timed), took):
            say(f"what {case} holds at {n}")
            record.held[f"{case} at {n}"] = held(build(case, n))


def shares(call: Call) -> dict[str, float]:
    """The operators that take most of a call's CPU time themselves, with their shares of it, falling."""
    call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    own = {each.key.removeprefix("aten::"): each.self_cpu_time_total for each in profile.key_averages()}
    total = sum(own.values())
    return {name: round(own[name] / total, 3) for name in sorted(own, key=own.__getitem__, reverse=True)[:NAMED]}


def _chosen(figures: Iterator[Figure], took: Mapping[tuple[str, int], float]) -> Iterator[tuple[str, int]]:
    """Each case with the largest of its sizes at which a call is short, or the smallest where none is."""
    sizes: dict[str, Sequence[int]] = {}
    for figure in figures:
        sizes[figure.case] = sorted({*sizes.get(figure.case, ()), figure.n})
    for case, found in sizes.items():
        short = [n for n in found if took.get((case, n), LONGEST) < LONGEST]
        yield case, (short or found[:1])[-1]
