"""Claim: Linformer's rank can stay constant as n grows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import metrics, registry
from attention_core.claims.claim import (
    FLOAT32_TOLERANCE,
    FUTURE,
    READ_BOTH_WAYS,
    Case,
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    Verdict,
    future,
)
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper

LINFORMER, BEST, UNIFORM = "Linformer", "best matrix of that rank", "uniform attention"
TIMES = (4, 6, 8, 12, 16)
"""Lengths as multiples of the rank. They are whole, because segments of unequal length add errors of their own. All are
well above the rank, where no projection is almost complete."""
SMALLEST = 4
"""Smallest rank judged. At rank one, Linformer is uniform attention for any projection; two or three means are little
more."""
NO_BETTER = 0.9
"""Fraction of uniform attention's error from which an error counts as no better. An error there has little room to
grow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """The relative error of one matrix of one head at one length; ``future`` is ``FUTURE`` of the input."""

    n: int
    rank: int
    future: float
    matrix: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[RankRow]:
    """Yield the errors of Linformer, of the best matrix of that rank and of uniform attention, per head and length."""
    rank = inputs.longest // TIMES[-1]
    softmax, linformer = registry.get("softmax"), registry.get("linformer", rank=rank)
    for times in TIMES:
        qkv = inputs.record(times * rank)
        exact, hidden = softmax.weights(qkv.q, qkv.k), future(qkv)
        errors = {
            LINFORMER: metrics.relative_error(linformer.weights(qkv.q, qkv.k), exact),
            BEST: metrics.truncated_svd_error(exact, rank),
            UNIFORM: metrics.uniform_error(exact),
        }
        for matrix, values in errors.items():
            for head, error in inputs.by_head(values):
                yield RankRow(
                    n=qkv.n, rank=rank, future=hidden, matrix=matrix, head=head, error=max(error, FLOAT32_TOLERANCE)
                )


def numbers(rows: Sequence[RankRow]) -> Numbers:
    """Return the medians over heads at the longest length, and the exponent of Linformer's error in n."""

    def middle(matrix: str, n: int) -> float:
        return median(row.error for row in rows if (row.matrix, row.n) == (matrix, n))

    lengths, last = sorted({row.n for row in rows}), max(rows, key=lambda row: row.n)
    return {
        "exponent": fit_power(lengths, [middle(LINFORMER, n) for n in lengths]).exponent,
        "error": middle(LINFORMER, last.n),
        "floor": middle(BEST, last.n),
        "uniform": middle(UNIFORM, last.n),
        "rank": last.rank,
        "shortest": lengths[0],
        "longest": last.n,
        "future": last.future,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by Linformer's error and its growth; ``PARTLY`` if only the best matrix of that rank is accurate."""
    if numbers["exponent"] <= bounds["flat"] and numbers["error"] <= bounds["useful"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if numbers["floor"] <= bounds["small"] else Verdict.FAILS


CLAIM = Claim(
    key="linformer_rank",
    number=5,
    statement="Linformer may keep the same rank however many tokens there are.",
    source=Paper("Linformer: Self-Attention with Linear Complexity", 2020, "https://arxiv.org/abs/2006.04768"),
    place=Place("error", {"against": "length"}, variants=("softmax", "linformer")),
    experiment="Linformer with segment means (untrained) keeps one rank, a quarter of the shortest length, while "
    "this input grows; its matrix is compared with softmax's, and so is the best matrix of that rank there is.",
    rule="Holds where Linformer's error grows no faster than n to the power {flat} and ends below {useful}; partly "
    "where not, but the best matrix of that rank ends below {small}, so that a better projection might do.",
    bounds={"flat": 0.15, "useful": 0.5, "small": 0.1},
    finding="At {longest} tokens Linformer of rank {rank} (a quarter of the shortest length, {shortest} tokens) errs "
    "by {error}, where uniform attention errs by {uniform} and the best matrix of that rank by {floor}; its error "
    "grows like n to the power {exponent}.",
    cases=(
        Case(
            finding="At {longest} tokens Linformer of rank {rank} (a quarter of the shortest length, {shortest} "
            "tokens) errs by {error}, no clear gain over uniform attention ({uniform}), where the best matrix of that "
            "rank errs by {floor}; that its error grows like n to the power {exponent} therefore says little.",
            applies=lambda numbers: numbers["error"] >= NO_BETTER * numbers["uniform"],
        ),
    ),
    quantities=(
        Quantity("exponent", "growth of the error, power of n", digits=2),
        Quantity("error", "Linformer's error at the longest"),
        Quantity("floor", "least error at that rank"),
        Quantity("uniform", "error of uniform attention"),
        Quantity("rank", "rank"),
        Quantity("shortest", "shortest input", "tokens"),
        Quantity("longest", "longest input", "tokens"),
        FUTURE,
    ),
    figure=Figure(
        x="n", y="error", by="matrix", x_title="tokens n", y_title="relative error beside softmax", log_x=True
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    notes=(READ_BOTH_WAYS,),
    noncausal_method=LINFORMER,
    needs=SMALLEST * TIMES[-1],
    measures_lengths=True,
)
