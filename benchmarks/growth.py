"""Measures how a variant's cost grows: with the length of the text, or from token to token in a decoder.

Full attention at 262,144 tokens takes minutes per head, so each variant is compared with itself at the smallest size.
The sizes are timed in turn within a round, as ``measure`` does with a variant and full attention. The ``base`` of a
result row is the time that the target growth predicts.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch

from attention_core.benchmarking.counting import count
from attention_core.registry import variant
from benchmarks.cases import MORE, Case, linear
from benchmarks.measure import CLOCKS, Plan, PreparedSubject, inputs, rounds_of, take_round
from benchmarks.rows import Row
from benchmarks.subjects import Call, Subject, variant_of

HEADS = 1
"""The number of heads: with eight, one tensor of 262,144 tokens would take half a gigabyte."""
LENGTHS = (8192, 16384, 65536, 262144)
POSITIONS = (1_000, 100_000)
"""Tokens that a decoder has read before the timed token."""
READ = 1024
"""The number of distinct tokens; a decoder reads them again and again up to its position."""

READING = "reading q, k and v"

Say = Callable[[str], None]


@torch.no_grad()
def lengths(cases: Sequence[Case], plan: Plan, say: Say) -> Iterator[Row]:
    """Time and count every case that is linear in n, at all sizes. Times are compared with growth in proportion to n.

    Args:
        cases: the cases; those that are not linear in n are skipped.
        plan: sizes and limits.
        say: receives progress messages.
    """
    for subject in (reading(), *(variant_of(case) for case in cases if linear(variant(case.key)))):
        calls = {}
        torch.set_num_threads(1)
        for n in plan.sizes:
            reason = subject.reason_to_skip(n, longest=plan.longest, memory=plan.memory)
            if reason:
                yield from (subject.row(n, mode, skipped=reason) for mode, *_ in CLOCKS)
                continue
            say(f"{subject.name}: n = {n}")
            q, k, v = inputs(HEADS, n)
            calls[n] = call = subject.build(q, k, v, n)
            if subject.counted:
                subject.peaks[n] = count(call, unit=torch.uint8).peak_elements
            start = time.process_time()
            call()
            subject.seconds[n] = time.process_time() - start
        yield from rows_of_growth(subject, calls, plan, power=1)


def reading() -> Subject:
    """Return a subject that sums all numbers of q, k and v, which every variant has to read from memory."""
    return Subject(
        READING, "", READING, "bound", False, lambda q, k, v, n: lambda: [x.sum() for x in (q, k, v)], counted=False
    )


@torch.no_grad()
def decode(cases: Sequence[Case], plan: Plan, say: Say) -> Iterator[Row]:
    """Time one decoding step of every variant that has a decoder, after each number of tokens in ``plan.sizes``.

    Args:
        cases: the cases to time, except those in ``MORE`` and those of variants without a decoder.
        plan: sizes and limits.
        say: receives progress messages.
    """
    for case in (case for case in cases if case not in MORE):
        decoder, p = variant(case.key).decoder, case.attention(case.settings).params
        if decoder is None:
            continue
        say(f"{case.label}: reading {max(plan.sizes):,} tokens")
        torch.set_num_threads(1)
        tokens = [tuple(x) for x in inputs(HEADS, READ).movedim(-2, 0).contiguous()]
        q, k, v = tokens[0]
        state, calls = decoder.init_state(q, v, p), {}
        for t in range(max(plan.sizes)):
            _, state = decoder.step(state, *tokens[t % READ], p)
            if t + 1 in plan.sizes:
                calls[t + 1] = partial(decoder.step, state, q, k, v, p)
        yield from rows_of_growth(variant_of(case), calls, plan, power=0)


def rows_of_growth(subject: Subject, calls: Mapping[int, Call], plan: Plan, *, power: int) -> Iterator[Row]:
    """Time a subject's calls in turn. A row's base is the smallest size's time, times (n / smallest n) ** ``power``.

    The base is thus the time that linear growth (``power`` 1) or constant time (``power`` 0) predicts.
    """
    first, *others = calls
    for mode, threads, clock in CLOCKS:
        torch.set_num_threads(threads)
        ready = {n: PreparedSubject(subject, call) for n, call in calls.items()}
        for r in ready.values():
            r.sample(clock, 0.0)
        for index in range(plan.rounds):
            rest = [ready[n] for n in others if index < rounds_of(ready[n], plan)]
            take_round(ready[first], rest, clock, plan)
        for n, r in ready.items():
            base = [seconds * (n / first) ** power for seconds in r.base]
            yield subject.row(n, mode, seconds=r.samples, base=base)
