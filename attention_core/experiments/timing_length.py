"""Measured time and memory of every variant over the number of tokens.

Every round visits all lengths and, at each length, all variants, with the order reversed each round. A temporary
slowdown of the machine then affects all variants equally, and the first round already covers the whole chart.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from attention_core.benchmarking.clock import Clock, clock_for
from attention_core.benchmarking.full_matrix_mask import Masked, attention_from_word
from attention_core.benchmarking.rounds import next_subject
from attention_core.benchmarking.run_records import BOUNDED, Observed, Run, Sample, Skipped
from attention_core.benchmarking.timing import TimingSpec, inputs, prepare, unsupported_reason
from attention_core.experiments.task import Load, load
from attention_core.formatting import MIB, N_
from attention_core.limits import current
from attention_core.variant import Attention

SHORTEST = 5e-3
"""Minimum seconds per sample, far above the clock's resolution; shorter calls are repeated within a sample."""
LONG = 50e-3
"""Seconds from which a call needs no warm-up. Shorter calls get one, to fill the caches."""
ENOUGH = 2.0
"""Total seconds of samples after which three samples are enough."""
FEWEST = 3


@dataclass(frozen=True, kw_only=True)
class SampleTask:
    """A task that takes one sample of a variant at a length, or reports why no sample is taken.

    Attributes:
        variant: the variant and its settings, or its mask, as named in the spec.
        round: the sample's number.
        first: the first sample; None if this is the first sample.
        reason: why no sample is taken; None if one is taken.
        most: the limit that the reason names.
    """

    spec: TimingSpec
    variant: str
    n: int
    round: int
    first: Sample | None = None
    reason: str | None = None
    most: float | None = None
    timed: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """The progress of a run that was stopped early.

    Attributes:
        tokens: the longest length up to which every variant was measured at least once, except those left out; None if
            not even the shortest was completed.
        rounds: number of complete rounds; 0 if the first round was not completed.
    """

    tokens: int | None
    rounds: int


def unfinished(run: Run) -> Unfinished | None:
    """Return the progress of a run; None if the run is complete."""
    out = {(left.variant, n) for left in run.left_out for n in run.spec.sizes if n >= left.n}
    wanted = [(word, n) for n in run.spec.sizes for word in run.spec.variants if (word, n) not in out]
    samples = {(point.variant, point.n): point.ms for point in run.points}
    short = [
        (n, len(ms))
        for word, n in wanted
        for ms in [samples.get((word, n), ())]
        if len(ms) < run.spec.rounds and not (len(ms) >= FEWEST and sum(ms) / 1e3 >= ENOUGH)
    ]
    if not short:
        return None
    missing = [n for n, count in short if not count]
    if not missing:
        return Unfinished(tokens=run.spec.sizes[-1], rounds=min(count for _n, count in short))
    return Unfinished(tokens=max((n for n in run.spec.sizes if n < min(missing)), default=None), rounds=0)


def total(spec: TimingSpec) -> int:
    """Return the largest number of rows that a run can give."""
    return spec.rounds * len(spec.sizes) * len(spec.variants)


def next_sample(
    spec: TimingSpec, rows: Sequence[Observed], *, longest: float | None = None, most_bytes: int | None = None
) -> SampleTask | None:
    """Return the next sample after these rows; None after the last one.

    A variant is left out from a length on if its cost formula, scaled from shorter lengths, predicts too much time or
    memory, or if memory ran out. One row reports this.

    Args:
        spec: the measurement.
        rows: the rows found so far, in order.
        longest: maximum seconds per call; None for the profile's limit.
        most_bytes: maximum bytes per call on the CPU; None for the profile's limit.
    """
    taken: dict[tuple[str, int], list[Sample]] = {}
    out: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Skipped):
            out[row.variant] = min(row.n, out.get(row.variant, row.n))
        else:
            taken.setdefault((row.variant, row.n), []).append(row)
    for word in spec.variants:
        if word not in out and (word, spec.sizes[0]) not in taken:
            why = unsupported_reason(attention_from_word(word), mode=spec.mode, causal=spec.causal)
            if why is not None:
                return SampleTask(spec=spec, variant=word, n=spec.sizes[0], round=0, reason=why)
    counts: dict[int, dict[str, int]] = {n: {} for n in spec.sizes}
    for n in spec.sizes:
        for word in spec.variants:
            here = taken.get((word, n), ())
            enough = len(here) >= FEWEST and sum(sample.ms for sample in here) / 1e3 >= ENOUGH
            if not enough and n < out.get(word, n + 1):
                counts[n][word] = len(here)
    n = min(spec.sizes, key=lambda n: (min(counts[n].values(), default=spec.rounds), n))
    turn = next_subject(counts[n], spec.rounds)
    if turn is None:
        return None
    if (turn, n) in taken:
        return SampleTask(spec=spec, variant=turn, n=n, round=counts[n][turn], first=taken[turn, n][0])
    shorter = {m: taken[turn, m][0] for m in spec.sizes if m < n and (turn, m) in taken}
    limits = current()
    why, most = _exceeded_limit(
        attention_from_word(turn),
        spec,
        shorter,
        n,
        limits.timed_seconds if longest is None else longest,
        limits.timed_bytes if most_bytes is None else most_bytes,
    )
    return SampleTask(spec=spec, variant=turn, n=n, round=0, reason=why, most=most)


def run(task: SampleTask, *, load: Load = load, clock: Clock | None = None) -> tuple[Observed]:
    """Take one sample, or report why the variant is left out from this length on.

    Args:
        task: the sample to take.
        load: unused, because q, k and v are Gaussian.
        clock: measures calls; None for the device's own clock.

    Raises:
        InputError: if torch does not detect the device.
    """
    if task.reason is not None:
        return (Skipped(variant=task.variant, n=task.n, reason=task.reason, most=task.most),)
    spec, attention = task.spec, attention_from_word(task.variant)
    clock, first = clock or clock_for(spec.device), task.first
    try:
        call = prepare(attention, *inputs(spec, task.n), mode=spec.mode, causal=spec.causal)
        if first is None:
            # Counting the operations runs the call once, which warms it up. A long call is therefore not repeated: its
            # first time below is its first sample.
            counts, peak = clock.costs(call)
            first = Sample(
                variant=task.variant,
                n=task.n,
                round=task.round,
                ms=1e3 * clock.seconds(call, 1),
                multiply_adds=counts.multiply_adds,
                promised=_promised(attention, spec, task.n),
                peak_bytes=peak,
            )
        ms, short = first.ms, first.ms / 1e3 < LONG
        if task.first is not None or short:
            if short:
                call()
            ms = 1e3 * clock.seconds(call, max(1, math.ceil(1e3 * SHORTEST / max(first.ms, 1e-3))))
    except torch.OutOfMemoryError:
        return (Skipped(variant=task.variant, n=task.n, reason=N_("The device ran out of memory.")),)
    return (replace(first, round=task.round, ms=ms),)


def measure(
    spec: TimingSpec, *, clock: Clock | None = None, longest: float | None = None, most_bytes: int | None = None
) -> Iterator[Observed]:
    """Yield all rows of a measurement; a caller may stop early.

    Arguments as in ``next_sample``, errors as in ``run``.
    """
    rows: list[Observed] = []
    while (task := next_sample(spec, rows, longest=longest, most_bytes=most_bytes)) is not None:
        rows += run(task, clock=clock)
        yield rows[-1]


def _exceeded_limit(
    attention: Attention, spec: TimingSpec, shorter: Mapping[int, Sample], n: int, longest: float, most_bytes: int
) -> tuple[str, float] | tuple[None, None]:
    """Return why a variant is not measured at n, predicted from shorter lengths or from its size, and the limit."""
    large, long = BOUNDED
    # A mask has n² entries and is built in the host's memory, also for other devices. This check needs no measurement
    # at a shorter length, so it also covers the first length.
    if isinstance(attention, Masked) and attention.bytes(n, spec.heads, spec.element) > most_bytes:
        return large, most_bytes / MIB
    if spec.mode == "decode" or not shorter:
        return None, None
    whole, *costs = (attention.cost(m, spec.head_size, causal=spec.causal, heads=spec.heads) for m in (n, *shorter))
    parts = dict(zip(shorter, costs, strict=True))
    # Use the smallest prediction, because a measurement at a shorter length may have been slowed by other processes.
    seconds = min(k.ms / 1e3 * whole.multiply_adds / max(parts[m].multiply_adds, 1) for m, k in shorter.items())
    held = min(k.peak_bytes * whole.peak_elements / max(parts[m].peak_elements, 1) for m, k in shorter.items())
    if seconds > longest:
        return long, longest
    if spec.device == "cpu" and held > most_bytes:
        return large, most_bytes / MIB
    return None, None


def _promised(attention: Attention, spec: TimingSpec, n: int) -> int | None:
    if spec.mode != "forward":
        return None
    return attention.cost(n, spec.head_size, causal=spec.causal, heads=spec.heads).multiply_adds
