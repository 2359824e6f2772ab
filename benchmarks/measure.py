"""Measures the time of each subject (a variant, its lower bound or a peer) relative to full attention.

It measures CPU time on one thread, and wall-clock time on all cores.

A round runs full attention, then subjects until they have taken as long as full attention did, then full attention
again, and so on through all subjects. The result is a subject's time divided by the mean time of full attention before
and after it. A machine that slows down as a whole therefore does not change the result; the spread over rounds shows
the remaining noise.
"""

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from attention_core.benchmarking.counting import count
from attention_core.benchmarking.timing import Backward
from benchmarks.cases import HEAD_SIZE, HEADS
from benchmarks.peers.adaptor import quietly
from benchmarks.rows import Mode, Row
from benchmarks.subjects import Subject, full

Clock = Callable[[], float]

CLOCKS: tuple[tuple[Mode, int, Clock], ...] = (
    ("one thread", 1, time.process_time),
    ("all cores", os.cpu_count() or 1, time.perf_counter),
)
"""Each mode with its number of threads and its clock."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The extent of a measurement.

    Attributes:
        sizes: numbers of tokens, rising.
        rounds: the largest number of rounds; long calls get fewer.
        shortest: the shortest sample in seconds; shorter calls are repeated within a sample.
        longest: the longest call in CPU seconds; calls expected to take longer are skipped and reported.
        memory: bytes; calls expected to need more are skipped and reported.
        dtype: the type of q, k and v.
        backward: whether the backward pass is timed, and forward and backward are counted.
        minutes: the time after which no further round starts; every size still gets one round.
    """

    sizes: Sequence[int]
    rounds: int = 5
    shortest: float = 5e-3
    longest: float = 4.0
    memory: int = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    dtype: torch.dtype = torch.float32
    backward: bool = False
    minutes: float = 12.0


@dataclass
class PreparedSubject:
    """A subject built for one size; ``seconds`` is the time of one call in its last sample."""

    subject: Subject
    call: Callable[[], Any]
    seconds: float = 0.0
    samples: list[float] = field(default_factory=list)
    base: list[float] = field(default_factory=list)

    def sample(self, clock: Clock, shortest: float) -> tuple[float, float]:
        """Run a sample, which repeats short calls; return the seconds of one call and of the whole sample."""
        repeats = max(1, math.ceil(shortest / max(self.seconds, 1e-5)))
        call = self.call.backward_only() if isinstance(self.call, Backward) else self.call
        start = clock()
        for _ in range(repeats):
            call()
        whole = clock() - start
        self.seconds = whole / repeats
        return self.seconds, whole


def measure(subjects: Sequence[Subject], plan: Plan, say: Callable[[str], None]) -> Iterator[Row]:
    """Time and count all subjects at all sizes, rising, and yield a row per subject, size and mode.

    Args:
        subjects: the subjects, without full attention.
        plan: the extent.
        say: receives progress messages.
    """
    everything = [*(full(causal, backward=plan.backward) for causal in sorted({s.causal for s in subjects})), *subjects]
    end = time.monotonic() + 60 * plan.minutes
    with torch.no_grad(), quietly():
        for n in plan.sizes:
            torch.set_num_threads(1)
            ready, skipped = _prepare(everything, n, plan, say)
            yield from (s.row(n, mode, skipped=why) for s, why in skipped for mode, *_ in CLOCKS)
            for mode, threads, clock in CLOCKS:
                # The product with the explicit matrix is only a rough comparison, so it is not timed on all cores.
                timed = [r for r in ready if r.subject.role != "explicit" or threads == 1]
                say(f"n = {n}: timing {len(timed)} subjects, {mode}")
                torch.set_num_threads(threads)
                _time(timed, clock, plan, end)
                for r in timed:
                    yield r.subject.row(n, mode, seconds=r.samples, base=r.base)
                    r.subject.seconds.setdefault(n, statistics.median(r.samples))
                    r.samples, r.base = [], []


def inputs(heads: int, n: int) -> torch.Tensor:
    """Return the same normal q, k and v in every run, ``[3, 1, H, n, d]``."""
    return torch.randn(3, 1, heads, n, HEAD_SIZE, generator=torch.Generator().manual_seed(n))


def _prepare(
    subjects: Sequence[Subject], n: int, plan: Plan, say: Callable[[str], None]
) -> tuple[list[PreparedSubject], list[tuple[Subject, str]]]:
    """Build the subjects for n tokens and count their memory; return them, and the skipped ones with the reason."""
    q, k, v = inputs(HEADS, n).to(plan.dtype)
    ready: list[PreparedSubject] = []
    skipped: list[tuple[Subject, str]] = []
    for subject in subjects:
        reason = subject.reason_to_skip(n, longest=plan.longest, memory=plan.memory)
        if reason:
            skipped.append((subject, reason))
            continue
        say(f"n = {n}: preparing {subject.label}, {subject.name}")
        try:
            built = PreparedSubject(subject, subject.build(q, k, v, n))
            start = time.perf_counter()
            if subject.counted:
                subject.peaks[n] = 4 * count(built.call).peak_elements
            else:
                built.call()
        except Exception as error:
            # A peer, the code of another project, may not support a length. This project's code must support it.
            if subject.role != "peer":
                raise
            skipped.append((subject, f"fails: {type(error).__name__}"))
            continue
        built.seconds = time.perf_counter() - start
        ready.append(built)
    return ready, skipped


def _time(ready: Sequence[PreparedSubject], clock: Clock, plan: Plan, end: float) -> None:
    """Collect the samples, round by round."""
    for r in ready:
        if not r.subject.counted:  # compiled code, which the changed number of threads recompiles
            r.call()
    for index in range(plan.rounds):
        if index and time.monotonic() > end:
            return
        for base in (r for r in ready if r.subject.role == "full"):
            group = [r for r in ready if r.subject.causal == base.subject.causal and r is not base]
            take_round(base, [r for r in group if index < rounds_of(r, plan)], clock, plan)


def rounds_of(r: PreparedSubject, plan: Plan) -> int:
    """Return the number of rounds in which a subject is timed."""
    explicit = r.subject.role == "explicit"
    for seconds, rounds in ((0.1, 9), (0.5, 5), (2.0, 3), (8.0, 2)):
        if r.seconds < seconds:
            return min(plan.rounds, 2 if explicit else rounds)
    return 1


def take_round(base: PreparedSubject, group: Sequence[PreparedSubject], clock: Clock, plan: Plan) -> None:
    """Time each subject of ``group`` once, between samples of ``base``, usually full attention.

    ``base`` is sampled first, after the last subject, and whenever subjects took as long as its previous sample.
    """
    if not group:
        return
    before, limit = base.sample(clock, plan.shortest)
    waiting: list[PreparedSubject] = []
    spent = 0.0
    for r in group:
        seconds, whole = r.sample(clock, plan.shortest)
        r.samples.append(seconds)
        waiting.append(r)
        spent += whole
        if spent >= limit or r is group[-1]:
            after, limit = base.sample(clock, plan.shortest)
            around = (before + after) / 2
            for w in waiting:
                w.base.append(around)
            base.samples.append(around)
            base.base.append(around)
            before, waiting, spent = after, [], 0.0
