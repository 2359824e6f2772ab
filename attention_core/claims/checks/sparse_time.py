"""Claim: local and sparse attention run slower than full attention, and atrous attention runs faster."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from attention_core import articles, registry
from attention_core.benchmarking.clock import CpuClock
from attention_core.claims.claim import Case, Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict

LENGTHS = (32, 128, 512, 1024)
"""Lengths timed in addition to the input's own length, in tokens, if they are greater. Their steps are small enough to
predict the time at the next length."""
ROUNDS = 5
"""Samples per variant and length."""
LEAST = 2e-3
"""Minimum seconds per sample; shorter calls are repeated."""
LONGEST = 0.25
"""Maximum predicted seconds of a full-matrix call. A variant that would exceed it is left out from that length on."""
FULL, HELD, MASKED = "Full, fused", "Full, scores held", "Full, scores held and masked"
LOCAL, SPARSE, ATROUS = "Local", "Sparse", "Atrous"
QUADRATIC = (FULL, HELD, MASKED)
ATTENTIONS = {FULL: "softmax", HELD: "softmax", MASKED: "local", LOCAL: "local", SPARSE: "sparse", ATROUS: "atrous"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """One time sample, its ratio to the time of ``FULL`` in the same round, and the ratio of ``MASKED`` to ``HELD``."""

    variant: str
    n: int
    own: bool
    ms: float
    ratio: float
    unmasked: float | None


def measure(inputs: ExperimentInput) -> Iterator[TimeRow]:
    """Yield time samples relative to fused full attention in the same round, at the input's length and longer ones.

    Times depend on shapes and not on values, so random numbers of the input's shape are timed.
    """
    qkv, clock = inputs.record(), CpuClock()
    before, took = qkv.n, dict.fromkeys(ATTENTIONS, 0.0)
    for n in (qkv.n, *(n for n in LENGTHS if n > qkv.n)):
        within = [name for name in took if name not in QUADRATIC or took[name] * (n / before) ** 2 <= LONGEST]
        if FULL not in within:
            break
        source = torch.Generator().manual_seed(n)
        q, k, v = torch.randn(3, qkv.heads, n, qkv.q.shape[-1], generator=source)
        calls = {name: call(name, q, k, v, causal=qkv.causal) for name in within}
        before, took = n, {name: first(clock, each) for name, each in calls.items()}
        for index in range(ROUNDS):
            turns = within if index % 2 == 0 else within[::-1]
            ms = {name: 1e3 * clock.seconds(calls[name], math.ceil(LEAST / took[name])) for name in turns}
            for name in within:
                masked = name == MASKED and HELD in ms
                yield TimeRow(
                    variant=name,
                    n=n,
                    own=n == qkv.n,
                    ms=ms[name],
                    ratio=ms[name] / ms[FULL],
                    unmasked=ms[MASKED] / ms[HELD] if masked else None,
                )


def call(name: str, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Callable[[], Tensor]:
    """Return the timed function: the variant's own algorithm, or the explicit matrix times the values."""
    attention = registry.get(ATTENTIONS[name])
    if name in (HELD, MASKED):
        return lambda: attention.weights(q, k, causal=causal) @ v
    return lambda: attention.attend(q, k, v, causal=causal)


def first(clock: CpuClock, each: Callable[[], Tensor]) -> float:
    """Return the seconds of a call after one warm-up call."""
    each()
    return max(clock.seconds(each, 1), 1e-6)


def numbers(rows: Sequence[TimeRow]) -> Numbers:
    """Return median ratios at the longest and at the input's own length, and the effect of masking."""
    own, longest = next(row.n for row in rows if row.own), max(row.n for row in rows)
    masking = [(row.n, row.unmasked) for row in rows if row.unmasked is not None]
    matrix = max(n for n, _ in masking)

    def ratio(name: str, n: int) -> float:
        return median(row.ratio for row in rows if row.variant == name and row.n == n)

    return {
        **{name.lower(): ratio(name, longest) for name in (LOCAL, SPARSE, ATROUS)},
        **{f"{name.lower()}_here": ratio(name, own) for name in (LOCAL, SPARSE, ATROUS)},
        "held": ratio(HELD, matrix),
        "masked": median(unmasked for n, unmasked in masking if n == matrix),
        "matrix": matrix,
        "own": own,
        "longest": longest,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the ratios and the masking at the longest length; ``PARTLY`` also by the input's own length."""
    even = bounds["even"]
    slower = [numbers[name] > even for name in ("local", "sparse")]
    if all(slower) and numbers["atrous"] < 1 and even * numbers["masked"] >= 1:
        return Verdict.HOLDS
    here = (numbers[name] > even for name in ("local_here", "sparse_here"))
    return Verdict.PARTLY if any(slower) or any(here) else Verdict.FAILS


CLAIM = Claim(
    key="sparse_time",
    number=16,
    statement="Local and sparse attention run slower than full attention, though they compute less, and only atrous "
    "attention faster; a mask laid on the full matrix saves nothing.",
    source=articles.STANDARD_TO_SPARSE,
    place=Place("timing", variants=("softmax", "local", "sparse", "atrous")),
    experiment="Local, sparse and atrous attention, as they are set at first, and full attention in three ways (fused, "
    "with the matrix of scores held, and that matrix masked to the local window) are timed in turn on this machine's "
    "processor, on random numbers of this input's shape and of greater lengths; each time is divided by that of fused "
    "full attention in the same round.",
    rule="Holds where at the longest length local and sparse attention both take more than {even}× the time of "
    "fused full attention, atrous attention takes less, and masking saves no more than that factor; partly where local "
    "or sparse attention takes more than {even}× as long there or at this input's length.",
    bounds={"even": 1.1},
    finding="At {longest} tokens local attention takes {local}× the time of full attention, sparse {sparse} and "
    "atrous {atrous}×; at this input's {own} tokens these are {local_here}, {sparse_here} and {atrous_here}. "
    "Full attention is torch's fused kernel; at {matrix} tokens it takes {held}× as long with its matrix of "
    "scores held, and that {masked}× as long with the local mask laid on.",
    cases=(
        Case(
            finding="At this input's {own} tokens local attention takes {local}× the time of full attention, "
            "sparse {sparse} and atrous {atrous}×; no longer input could be timed. "
            "Full attention is torch's fused kernel; at {matrix} tokens it takes {held}× as long with its matrix "
            "of scores held, and that {masked}× as long with the local mask laid on.",
            applies=lambda numbers: numbers["own"] == numbers["longest"],
        ),
    ),
    quantities=(
        Quantity("local", "local attention over full, longest length"),
        Quantity("sparse", "sparse attention over full, longest length"),
        Quantity("atrous", "atrous attention over full, longest length"),
        Quantity("longest", "longest length", "tokens"),
        Quantity("local_here", "local attention over full, this input"),
        Quantity("sparse_here", "sparse attention over full, this input"),
        Quantity("atrous_here", "atrous attention over full, this input"),
        Quantity("own", "this input", "tokens"),
        Quantity("held", "full attention with scores held over fused"),
        Quantity("masked", "scores masked over unmasked"),
        Quantity("matrix", "length of these two", "tokens"),
    ),
    figure=Figure(
        x="n",
        y="ratio",
        by="variant",
        x_title="tokens n",
        y_title="time ÷ fused full attention's time",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    timed=True,
)
