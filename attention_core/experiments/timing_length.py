"""When does the cheap version pay? Time and memory of every variant against the number of tokens.

Every round visits all lengths and, at each, all variants, forwards and backwards in turn: whatever slows the machine
down for a while slows all of them down alike, and the first round already gives the whole picture.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from attention_core.benchmarking.clock import Clock, clock_for
from attention_core.benchmarking.masked import Masked, subject
from attention_core.benchmarking.records import BOUNDED, LeftOut, Observed, Run, Sample
from attention_core.benchmarking.rounds import whose_turn
from attention_core.benchmarking.timing import TimingSpec, inputs, prepare, why_not
from attention_core.experiments.task import Load, load
from attention_core.formatting import MIB, N_
from attention_core.limits import current
from attention_core.variant import Attention

SHORTEST = 5e-3
"""Seconds that one sample takes at least, far above the clock's grain: shorter calls are repeated within it."""
LONG = 50e-3
"""Seconds of a call that no longer gains from an untimed call before it, which short ones get to fill the caches."""
ENOUGH = 2.0
"""Seconds of samples after which three of them do."""
FEWEST = 3


@dataclass(frozen=True, kw_only=True)
class SampleTask:
    """One sample of a variant at a length, or the statement that none is taken.

    Attributes:
        spec: what is measured.
        variant: the variant and its settings, or its mask, as the spec names it.
        n: tokens.
        round: the sample's number.
        first: what the first one found; None for that one.
        reason: why none is taken; None where one is.
        most: the bound that the reason names.
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
    """How far a run came that was ended before its end.

    Attributes:
        tokens: up to this length every variant was measured at least once, but for what was left out; None where not
            even at the shortest.
        rounds: whole rounds that there are; 0 where the first was not ended.
    """

    tokens: int | None
    rounds: int


def unfinished(run: Run) -> Unfinished | None:
    """How far a run came; None for one that gave all it was asked for."""
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
    """The most rows a run can give."""
    return spec.rounds * len(spec.sizes) * len(spec.variants)


def following(
    spec: TimingSpec, rows: Sequence[Observed], *, longest: float | None = None, most_bytes: int | None = None
) -> SampleTask | None:
    """The sample that comes after these rows; None after the last.

    A variant that is expected to take too long or hold too much at a length (by its own cost formula, from the
    lengths before), or whose memory gave out, is left out from there on: one row says so.

    Args:
        spec: what to measure.
        rows: those there are of it, in the order in which they were found.
        longest: seconds one call may take; the profile's bound when None.
        most_bytes: bytes one call may hold on the CPU; the profile's bound when None.
    """
    taken: dict[tuple[str, int], list[Sample]] = {}
    out: dict[str, int] = {}
    for row in rows:
        if isinstance(row, LeftOut):
            out[row.variant] = min(row.n, out.get(row.variant, row.n))
        else:
            taken.setdefault((row.variant, row.n), []).append(row)
    for word in spec.variants:
        if word not in out and (word, spec.sizes[0]) not in taken:
            why = why_not(subject(word), mode=spec.mode, causal=spec.causal)
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
    turn = whose_turn(counts[n], spec.rounds)
    if turn is None:
        return None
    if (turn, n) in taken:
        return SampleTask(spec=spec, variant=turn, n=n, round=counts[n][turn], first=taken[turn, n][0])
    shorter = {m: taken[turn, m][0] for m in spec.sizes if m < n and (turn, m) in taken}
    limits = current()
    why, most = _too_much(
        subject(turn),
        spec,
        shorter,
        n,
        limits.timed_seconds if longest is None else longest,
        limits.timed_bytes if most_bytes is None else most_bytes,
    )
    return SampleTask(spec=spec, variant=turn, n=n, round=0, reason=why, most=most)


def run(task: SampleTask, *, load: Load = load, clock: Clock | None = None) -> tuple[Observed]:
    """Take one sample, or say why the variant is left out from this length on.

    Args:
        task: which.
        load: not needed, as q, k and v are Gaussian.
        clock: measures calls; the device's own when None.

    Raises:
        InputError: if torch does not see the device.
    """
    if task.reason is not None:
        return (LeftOut(variant=task.variant, n=task.n, reason=task.reason, most=task.most),)
    spec, attention = task.spec, subject(task.variant)
    clock, first = clock or clock_for(spec.device), task.first
    try:
        call = prepare(attention, *inputs(spec, task.n), mode=spec.mode, causal=spec.causal)
        if first is None:
            # Counting warms the call up: of one that is long enough the first look is the first sample.
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
        return (LeftOut(variant=task.variant, n=task.n, reason=N_("The device's memory gave out.")),)
    return (replace(first, round=task.round, ms=ms),)


def measure(
    spec: TimingSpec, *, clock: Clock | None = None, longest: float | None = None, most_bytes: int | None = None
) -> Iterator[Observed]:
    """Measure it all, arguments as of ``following``, rows and errors as of ``run``; whoever stops asking keeps some."""
    rows: list[Observed] = []
    while (task := following(spec, rows, longest=longest, most_bytes=most_bytes)) is not None:
        rows += run(task, clock=clock)
        yield rows[-1]


def _too_much(
    attention: Attention, spec: TimingSpec, shorter: Mapping[int, Sample], n: int, longest: float, most_bytes: int
) -> tuple[str, float] | tuple[None, None]:
    """Why a variant is not measured at n, by what it took at shorter lengths or by its size alone, and the bound."""
    large, long = BOUNDED
    # n² numbers: the first length may already be too many, and the mask is made on the host whatever the device.
    if isinstance(attention, Masked) and attention.bytes(n, spec.heads, spec.element) > most_bytes:
        return large, most_bytes / MIB
    if spec.mode == "decode" or not shorter:
        return None, None
    whole, *costs = (attention.cost(m, spec.head_size, causal=spec.causal, heads=spec.heads) for m in (n, *shorter))
    parts = dict(zip(shorter, costs, strict=True))
    # The least of what each length foretells: at any one of them something else may have held the machine up.
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
