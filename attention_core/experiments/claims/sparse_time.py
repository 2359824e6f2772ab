"""Local and atrous attention need not be slower than full attention."""

from collections.abc import Mapping, Sequence
from statistics import median

from attention_core import registry
from attention_core.experiments import timing_length
from attention_core.experiments.claims.claim import Ask, Case, Claim, Figure, Quantity, Verdict, column
from attention_core.experiments.task import Row
from attention_core.measure.clock import CpuClock
from attention_core.measure.timing import TimingSpec
from attention_core.variant import Paper

LENGTHS = (32, 512, 1024, 2048)
"""Lengths timed besides the input's own, in tokens, where they are greater. What a few tokens take is all overhead: a
step in between keeps it from being taken for a measure of the long ones, which would then be left out."""
ROUNDS = 7
"""Samples of each variant at each length."""
LONGEST = 0.2
"""Seconds of the longest call: what would take more is left out."""
FULL, SPARSE = "softmax", ("local", "atrous")


def measure(ask: Ask) -> list[Row]:
    """Each sample's time over that of full attention in the same round, at the input's length and at longer ones.

    Times depend on shapes and not on what the numbers are, so random numbers of the input's shape are timed.
    """
    qkv = ask.record()
    titles = {registry.get(key).word: registry.get(key).title for key in (FULL, *SPARSE)}
    spec = TimingSpec(
        variants=tuple(titles),
        sizes=(qkv.n, *(n for n in LENGTHS if n > qkv.n)),
        causal=qkv.causal,
        heads=qkv.heads,
        head_size=qkv.q.shape[-1],
        rounds=ROUNDS,
    )
    samples = list(timing_length.run(spec, clock=CpuClock(), longest=LONGEST))
    rows: list[Row] = []
    for n in spec.sizes:
        timed = [column(samples, "ms", variant=word, n=n) for word in titles]
        # Each beside full attention of its own round; left out where one of them was, fewer where one had enough.
        for full, *sparse in zip(*timed, strict=False):
            for title, ms in zip(titles.values(), (full, *sparse), strict=True):
                rows.append({"variant": title, "n": n, "own": n == qkv.n, "ms": ms, "ratio": ms / full})
    return rows


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """The slower of the two variants, by the median of its ratios, at the input's length and at the longest."""
    titles = [registry.get(key).title for key in SPARSE]
    ratios = {
        n: max(median(column(rows, "ratio", variant=title, n=n)) for title in titles)
        for n in sorted(set(column(rows, "n")))
    }
    own, longest = column(rows, "n", own=True)[0], max(ratios)
    return {
        "here": ratios[own],
        "long": ratios[longest],
        "worst": max(ratios.values()),
        "own": own,
        "longest": longest,
    }


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By the worst ratio, then by the ratio at the longest length."""
    if numbers["worst"] <= bounds["even"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if numbers["long"] <= bounds["even"] else Verdict.FAILS


CLAIM = Claim(
    key="sparse_time",
    number=16,
    statement="Local and atrous attention need not be slower than full attention, though that runs as one large "
    "product.",
    source=Paper("From standard to sparse attention", 2019, "https://kexue.fm/archives/6853"),
    experiment="Full, local and atrous attention are timed in turn on this machine's processor, on random numbers of "
    "this input's shape and of greater lengths; each time is divided by full attention's in the same round.",
    rule="Holds where the slower of the two takes at most {even} times full attention's time at every length, partly "
    "where it does at the longest.",
    bounds={"even": 1.1},
    finding="At this input's {own} tokens the slower of the two takes {here} times full attention's time, at {longest} "
    "tokens {long} times.",
    cases=(
        Case(
            finding="At this input's {own} tokens the slower of the two takes {here} times full attention's time; no "
            "other length could be timed.",
            applies=lambda numbers: numbers["own"] == numbers["longest"],
        ),
    ),
    quantities=(
        Quantity(name="here", label="time over full attention's, here"),
        Quantity(name="long", label="at the longest length"),
        Quantity(name="worst", label="at the worst length"),
        Quantity(name="own", label="this input", unit="tokens"),
        Quantity(name="longest", label="longest length", unit="tokens"),
    ),
    figure=Figure(
        x="n", y="ratio", by="variant", x_title="tokens n", y_title="time ÷ full attention's time",
        log_x=True, log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    timed=True,
)  # fmt: skip
