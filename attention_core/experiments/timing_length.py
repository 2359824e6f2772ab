"""Measured time and memory of every variant at several sequence lengths.

Every round measures all lengths and, at each length, all variants, in the reverse order of the previous round. A
temporary slowdown of the machine then affects all variants equally, and the first round already measures every
length.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from attention_core.attention import Attention
from attention_core.benchmarking.clock import Clock, clock_for
from attention_core.benchmarking.full_matrix_mask import MaskedFullAttention, attention_from_word
from attention_core.benchmarking.rounds import next_subject
from attention_core.benchmarking.run_records import LIMIT_REASONS, Run, Sample, Skipped, TimingRow
from attention_core.benchmarking.timing import TimingSpec, inputs, prepare, unsupported_reason
from attention_core.experiments.task import Load, load
from attention_core.formatting import MIB, N_
from attention_core.limits import current

MIN_SAMPLE_SECONDS = 5e-3
"""Minimum seconds per sample, far above the clock's resolution; shorter calls are repeated within a sample."""
NO_WARM_UP_SECONDS = 50e-3
"""Seconds from which a call needs no warm-up. Shorter calls get one, to fill the caches."""
ENOUGH_SECONDS = 2.0
"""Total seconds of samples after which three samples are enough."""
MIN_SAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class SampleTask:
    """A task that takes one sample of a variant at a length, or reports why no sample is taken.

    Attributes:
        variant: the variant and its settings, or its mask on full attention, as written in ``TimingSpec.variants``.
        round: the sample's number.
        first: the variant's first sample at this length; None if this task takes it.
        reason: why no sample is taken; None if one is taken.
        most: the limit on memory or time that the reason states; None if the reason states no limit.
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
        tokens: the longest length up to which every variant was measured or left out; None if not even the shortest
            length was completed.
        rounds: number of complete rounds; 0 if the first round was not completed.
    """

    tokens: int | None
    rounds: int


def unfinished(run: Run) -> Unfinished | None:
    """Return the progress of a run; None if the run is complete."""
    left_out = {(skipped.variant, n) for skipped in run.left_out for n in run.spec.sizes if n >= skipped.n}
    expected = [(word, n) for n in run.spec.sizes for word in run.spec.variants if (word, n) not in left_out]
    samples = {(point.variant, point.n): point.ms for point in run.points}
    incomplete = [
        (n, len(ms))
        for word, n in expected
        for ms in [samples.get((word, n), ())]
        if len(ms) < run.spec.rounds and not (len(ms) >= MIN_SAMPLES and sum(ms) / 1e3 >= ENOUGH_SECONDS)
    ]
    if not incomplete:
        return None
    missing = [n for n, count in incomplete if not count]
    if not missing:
        return Unfinished(tokens=run.spec.sizes[-1], rounds=min(count for _n, count in incomplete))
    return Unfinished(tokens=max((n for n in run.spec.sizes if n < min(missing)), default=None), rounds=0)


def total(spec: TimingSpec) -> int:
    """Return the largest number of rows that a run can give."""
    return spec.rounds * len(spec.sizes) * len(spec.variants)


def next_sample(
    spec: TimingSpec, rows: Sequence[TimingRow], *, max_seconds: float | None = None, max_bytes: int | None = None
) -> SampleTask | None:
    """Return the next sample after these rows; None after the last one.

    A variant is left out if the measurement's mode does not support it. It is left out from a length on if its cost
    formula, scaled from shorter lengths, predicts too much time or memory, or if memory ran out. One row reports this.

    Args:
        spec: the measurement.
        rows: the rows found so far, in order.
        max_seconds: maximum seconds per call; None for the profile's limit.
        max_bytes: maximum bytes per call on the CPU; None for the profile's limit.
    """
    samples: dict[tuple[str, int], list[Sample]] = {}
    skipped_from: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Skipped):
            skipped_from[row.variant] = min(row.n, skipped_from.get(row.variant, row.n))
        else:
            samples.setdefault((row.variant, row.n), []).append(row)
    for word in spec.variants:
        if word not in skipped_from and (word, spec.sizes[0]) not in samples:
            reason = unsupported_reason(attention_from_word(word), mode=spec.mode, causal=spec.causal)
            if reason is not None:
                return SampleTask(spec=spec, variant=word, n=spec.sizes[0], round=0, reason=reason)
    counts: dict[int, dict[str, int]] = {n: {} for n in spec.sizes}
    for n in spec.sizes:
        for word in spec.variants:
            durations = samples.get((word, n), ())
            enough = len(durations) >= MIN_SAMPLES and sum(sample.ms for sample in durations) / 1e3 >= ENOUGH_SECONDS
            if not enough and n < skipped_from.get(word, n + 1):
                counts[n][word] = len(durations)
    n = min(spec.sizes, key=lambda n: (min(counts[n].values(), default=spec.rounds), n))
    variant = next_subject(counts[n], spec.rounds)
    if variant is None:
        return None
    if (variant, n) in samples:
        return SampleTask(spec=spec, variant=variant, n=n, round=counts[n][variant], first=samples[variant, n][0])
    shorter = {m: samples[variant, m][0] for m in spec.sizes if m < n and (variant, m) in samples}
    limits = current()
    reason, limit = _exceeded_limit(
        attention_from_word(variant),
        spec,
        shorter,
        n,
        limits.timed_seconds if max_seconds is None else max_seconds,
        limits.timed_bytes if max_bytes is None else max_bytes,
    )
    return SampleTask(spec=spec, variant=variant, n=n, round=0, reason=reason, most=limit)


def run(task: SampleTask, *, load: Load = load, clock: Clock | None = None) -> tuple[TimingRow]:
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
            # Counting the operations runs the call once. That is enough to warm up a long call, so the time measured
            # after it is the first sample. A short call is warmed up and timed again below.
            counts, peak = clock.costs(call)
            first = Sample(
                variant=task.variant,
                n=task.n,
                round=task.round,
                ms=1e3 * clock.seconds(call, 1),
                multiply_adds=counts.multiply_adds,
                promised=_formula_multiply_adds(attention, spec, task.n),
                peak_bytes=peak,
            )
        ms, is_short = first.ms, first.ms / 1e3 < NO_WARM_UP_SECONDS
        if task.first is not None or is_short:
            if is_short:
                call()
            ms = 1e3 * clock.seconds(call, max(1, math.ceil(1e3 * MIN_SAMPLE_SECONDS / max(first.ms, 1e-3))))
    except torch.OutOfMemoryError:
        return (Skipped(variant=task.variant, n=task.n, reason=N_("The device ran out of memory.")),)
    return (replace(first, round=task.round, ms=ms),)


def measure(
    spec: TimingSpec, *, clock: Clock | None = None, max_seconds: float | None = None, max_bytes: int | None = None
) -> Iterator[TimingRow]:
    """Yield all rows of a measurement; a caller may stop early.

    Arguments as in ``next_sample``, errors as in ``run``.
    """
    rows: list[TimingRow] = []
    while (task := next_sample(spec, rows, max_seconds=max_seconds, max_bytes=max_bytes)) is not None:
        rows += run(task, clock=clock)
        yield rows[-1]


def _exceeded_limit(
    attention: Attention, spec: TimingSpec, shorter: Mapping[int, Sample], n: int, max_seconds: float, max_bytes: int
) -> tuple[str, float] | tuple[None, None]:
    """Return why a variant is not measured at n tokens, and the limit in MiB or seconds; two Nones if it is measured.

    Time and memory are predicted from shorter lengths. The memory of a mask on the full matrix is computed from n.
    """
    large, long = LIMIT_REASONS
    # A mask has n² entries and is built in the host's memory, even if attention runs on another device. This check
    # needs no measurement at a shorter length, so it also applies to the first length.
    if isinstance(attention, MaskedFullAttention) and attention.bytes(n, spec.heads, spec.element) > max_bytes:
        return large, max_bytes / MIB
    if spec.mode == "decode" or not shorter:
        return None, None
    cost, *costs = (attention.cost(m, spec.head_size, causal=spec.causal, heads=spec.heads) for m in (n, *shorter))
    known = dict(zip(shorter, costs, strict=True))
    # Use the smallest prediction, because a measurement at a shorter length may have been slowed by other processes.
    seconds = min(s.ms / 1e3 * cost.multiply_adds / max(known[m].multiply_adds, 1) for m, s in shorter.items())
    peak_bytes = min(s.peak_bytes * cost.peak_elements / max(known[m].peak_elements, 1) for m, s in shorter.items())
    if seconds > max_seconds:
        return long, max_seconds
    if spec.device == "cpu" and peak_bytes > max_bytes:
        return large, max_bytes / MIB
    return None, None


def _formula_multiply_adds(attention: Attention, spec: TimingSpec, n: int) -> int | None:
    if spec.mode != "forward":
        return None
    return attention.cost(n, spec.head_size, causal=spec.causal, heads=spec.heads).multiply_adds
