"""When does the cheap version pay? Time and memory of every variant against the number of tokens.

Every round visits all lengths and, at each, all variants, forwards and backwards in turn: whatever slows the machine
down for a while slows all of them down alike, and the first round already gives the whole picture.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from attention_core.experiments.task import Row
from attention_core.limits import current
from attention_core.measure.clock import Call, Clock, clock_for
from attention_core.measure.masked import Masked, subject
from attention_core.measure.records import Run
from attention_core.measure.timing import TimingSpec, inputs, prepare, why_not
from attention_core.variant import Attention

SHORTEST = 5e-3
"""Seconds that one sample takes at least, far above the clock's grain: shorter calls are repeated within it."""
LONG = 50e-3
"""Seconds of a call that no longer gains from an untimed call before it, which short ones get to fill the caches."""
ENOUGH = 2.0
"""Seconds of samples after which three of them do."""
FEWEST = 3


@dataclass
class _Known:
    """What the first visit learned of a variant at a length."""

    seconds: float
    spent: float
    samples: int
    multiply_adds: int
    peak_bytes: int


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
        if len(ms) < run.spec.rounds and not (len(ms) >= FEWEST and sum(ms) >= 1e3 * ENOUGH)
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


def run(
    spec: TimingSpec, *, clock: Clock | None = None, longest: float | None = None, most_bytes: int | None = None
) -> Iterator[Row]:
    """Measure, sample by sample; whoever stops asking keeps what there is.

    A variant that is expected to take too long or hold too much at a length (by its own cost formula, from the
    lengths before), or whose memory gives out, is left out from there on: one row says so.

    Args:
        spec: what to measure.
        clock: measures calls; the device's own when None.
        longest: seconds one call may take; the profile's bound when None.
        most_bytes: bytes one call may hold on the CPU; the profile's bound when None.

    Yields:
        One row per sample: ``variant``, ``n``, ``round``, ``ms`` of one call, its counted ``multiply_adds``, those
        ``promised`` by the variant's cost formula (forward only, else None) and ``peak_bytes``; or, with ``ms`` None,
        the ``reason`` for which a variant is left out from this length on.

    Raises:
        InputError: if torch does not see the device.
    """
    limits = current()
    clock = clock or clock_for(spec.device)
    longest = limits.timed_seconds if longest is None else longest
    most_bytes = limits.timed_bytes if most_bytes is None else most_bytes
    attentions = [subject(word) for word in spec.variants]
    known: dict[tuple[str, int], _Known] = {}
    out: set[str] = set()
    for attention in attentions:
        if (why := why_not(attention, mode=spec.mode, causal=spec.causal)) is not None:
            out.add(attention.word)
            yield _left_out(attention, spec.sizes[0], why)
    for index in range(spec.rounds):
        for place, n in enumerate(spec.sizes):
            q, k, v = inputs(spec, n)
            for attention in attentions if index % 2 == 0 else reversed(attentions):
                here = known.get((attention.word, n))
                if index and (here is None or (here.spent >= ENOUGH and here.samples >= FEWEST)):
                    continue
                if here is None and attention.word in out:
                    continue
                shorter = {m: known[attention.word, m] for m in spec.sizes[:place]} if here is None else {}
                if (why := _too_much(attention, spec, shorter, n, longest, most_bytes)) is not None:
                    out.add(attention.word)
                    yield _left_out(attention, n, why)
                    continue
                try:
                    call = prepare(attention, q, k, v, mode=spec.mode, causal=spec.causal)
                    here = known[attention.word, n] = here or _first(clock, call)
                    seconds = _sample(clock, call, here)
                except torch.OutOfMemoryError:
                    out.add(attention.word)
                    yield _left_out(attention, n, "The device's memory gave out.")
                    continue
                yield {
                    "variant": attention.word,
                    "n": n,
                    "round": index,
                    "ms": seconds * 1e3,
                    "multiply_adds": here.multiply_adds,
                    "promised": _promised(attention, spec, n),
                    "peak_bytes": here.peak_bytes,
                    "reason": None,
                }


def _first(clock: Clock, call: Call) -> _Known:
    """Count a call, which warms it up, and see how long it takes."""
    counts, peak = clock.costs(call)
    return _Known(clock.seconds(call, 1), 0.0, 0, counts.multiply_adds, peak)


def _sample(clock: Clock, call: Call, known: _Known) -> float:
    if known.seconds >= LONG and known.samples == 0:
        seconds = known.seconds  # warm and long enough: the first look is the first sample
    else:
        if known.seconds < LONG:
            call()
        seconds = clock.seconds(call, max(1, math.ceil(SHORTEST / max(known.seconds, 1e-6))))
    known.spent += seconds
    known.samples += 1
    return seconds


def _too_much(
    attention: Attention, spec: TimingSpec, shorter: Mapping[int, _Known], n: int, longest: float, most_bytes: int
) -> str | None:
    """Why a variant is not measured at n, by what it took at shorter lengths or by its size alone; None where it is."""
    too_large = f"One call would hold more than {most_bytes / 2**20:,.0f} MiB."
    # n² numbers: the first length may already be too many, and the mask is made on the host whatever the device.
    if isinstance(attention, Masked) and attention.bytes(n, spec.heads, spec.element) > most_bytes:
        return too_large
    if spec.mode == "decode" or not shorter:
        return None
    whole = attention.cost(n, spec.head_size, causal=spec.causal)
    parts = {m: attention.cost(m, spec.head_size, causal=spec.causal) for m in shorter}
    # The least of what each length foretells: at any one of them something else may have held the machine up.
    seconds = min(k.seconds * whole.multiply_adds / max(parts[m].multiply_adds, 1) for m, k in shorter.items())
    held = min(k.peak_bytes * whole.peak_elements / max(parts[m].peak_elements, 1) for m, k in shorter.items())
    if seconds > longest:
        return f"One call would take more than {longest:g} s."
    if spec.device == "cpu" and held > most_bytes:
        return too_large
    return None


def _promised(attention: Attention, spec: TimingSpec, n: int) -> int | None:
    if spec.mode != "forward":
        return None
    return spec.heads * attention.cost(n, spec.head_size, causal=spec.causal).multiply_adds


def _left_out(attention: Attention, n: int, reason: str) -> Row:
    return {
        "variant": attention.word,
        "n": n,
        "round": 0,
        "ms": None,
        "multiply_adds": None,
        "promised": None,
        "peak_bytes": None,
        "reason": reason,
    }
