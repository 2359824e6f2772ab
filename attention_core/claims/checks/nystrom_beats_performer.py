"""Claim: Nyström with 64 landmarks beats Performer with several times d features."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

from attention_core import articles, metrics, registry
from attention_core.claims.claim import (
    FUTURE,
    READ_BOTH_WAYS,
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    Verdict,
    check_not_uniform,
    future,
)
from attention_core.experiments.error import draws

NYSTROM, PERFORMER, UNIFORM = "Nyström", "Performer", "uniform attention"
LANDMARKS, SHARED = 64, 4
"""Number of landmarks, and minimum tokens per landmark: an approximation that saves nothing proves nothing."""
TIMES, JUDGED = (1, 2, 4, 8), 4
"""Performer's number of features as multiples of the head size d: the values measured, and the value that is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturesRow:
    """The relative error of one head's matrix, Performer's with ``features`` = ``times`` · d, and ``FUTURE``."""

    times: int
    features: int
    n: int
    future: float
    variant: str
    head: int
    seed: int | None
    error: float


def measure(inputs: ExperimentInput) -> Iterator[FeaturesRow]:
    """Yield the relative errors per head of Performer over features and seeds, of Nyström and of uniform attention.

    All are measured without a causal mask, because Nyström cannot be causal.

    Raises:
        UntestableError: if all tokens have the same weight.
    """
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k)
    d, hidden = qkv.q.shape[-1], future(qkv)
    nystrom = registry.get("nystrom", landmarks=LANDMARKS).weights(qkv.q, qkv.k)
    beside = {NYSTROM: metrics.relative_error(nystrom, exact), UNIFORM: metrics.uniform_error(exact)}
    check_not_uniform(beside[UNIFORM])
    for times in TIMES:
        row = partial(FeaturesRow, times=times, features=times * d, n=qkv.n, future=hidden)
        for seed, performer in enumerate(draws(registry.get("performer", features=times * d))):
            errors = metrics.relative_error(performer.weights(qkv.q, qkv.k), exact)
            for head, error in inputs.by_head(errors):
                yield row(variant=PERFORMER, head=head, seed=seed, error=error)
        for variant, values in beside.items():
            for head, error in inputs.by_head(values):
                yield row(variant=variant, head=head, seed=None, error=error)


def numbers(rows: Sequence[FeaturesRow]) -> Numbers:
    """Return medians over heads, and the share of heads where Nyström beats the median of Performer's draws."""
    judged = [row for row in rows if row.times == JUDGED]
    nystrom = {row.head: row.error for row in judged if row.variant == NYSTROM}
    drawn = {
        head: median(row.error for row in judged if row.variant == PERFORMER and row.head == head) for head in nystrom
    }
    return {
        "wins": 100 * fmean(nystrom[head] < drawn[head] for head in nystrom),
        "nystrom": median(nystrom.values()),
        "performer": median(drawn.values()),
        "uniform": median(row.error for row in judged if row.variant == UNIFORM),
        "features": judged[0].features,
        "tokens": judged[0].n,
        "future": judged[0].future,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the share of heads that Nyström wins; ``PARTLY`` if it barely beats uniform attention."""
    if numbers["wins"] < bounds["some"]:
        return Verdict.FAILS
    useful = numbers["nystrom"] <= bounds["useful"] * numbers["uniform"]
    return Verdict.HOLDS if useful and numbers["wins"] >= bounds["most"] else Verdict.PARTLY


CLAIM = Claim(
    key="nystrom_beats_performer",
    number=9,
    statement="Nyström with 64 landmarks comes closer to softmax than Performer with several times d random features.",
    source=articles.NYSTROMFORMER,
    place=Place("error", variants=("softmax", "nystrom", "performer")),
    experiment="Both matrices are compared with softmax's: Nyström with 64 landmarks, each the mean of four "
    "tokens at least, Performer with d to 8 d features in five draws; 4 d is what is judged.",
    rule="Holds where Nyström is closer in {most}% of the heads and errs by at most {useful} of what uniform "
    "attention does; partly where it is closer in {some}%.",
    bounds={"most": 75, "some": 50, "useful": 0.9},
    finding="With 64 landmarks for {tokens} tokens Nyström errs by {nystrom}, with {features} features Performer by "
    "{performer}, uniform attention by {uniform}; Nyström is closer in {wins}% of the heads.",
    quantities=(
        Quantity("wins", "heads where Nyström is closer", "%"),
        Quantity("nystrom", "error of Nyström"),
        Quantity("performer", "error of Performer"),
        Quantity("uniform", "error of uniform attention"),
        Quantity("features", "features, 4 d"),
        Quantity("tokens", "this input", "tokens"),
        FUTURE,
    ),
    figure=Figure(
        x="times",
        y="error",
        by="variant",
        x_title="Performer's features, in head sizes d",
        y_title="relative error beside softmax",
        log_x=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    notes=(READ_BOTH_WAYS,),
    noncausal_method=NYSTROM,
    needs=SHARED * LANDMARKS,
)
