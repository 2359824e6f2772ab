"""Claim: Linformer's rank can stay constant as n grows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Case, Figure, Numbers, Place, Quantity, Verdict, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE, FUTURE, MEASURED_UNMASKED, future
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
        for matrix, error in errors.items():
            floored = [max(each, FLOAT32_TOLERANCE) for each in error.tolist()]
            yield from inputs.head_rows(RankRow, n=qkv.n, rank=rank, future=hidden, matrix=matrix, error=floored)


def numbers(rows: Sequence[RankRow]) -> Numbers:
    """Return the medians over heads at the longest length, and the exponent of Linformer's error in n."""

    def middle(matrix: str, n: int) -> float:
        return median(values(rows, "error", matrix=matrix, n=n))

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
    measure,
    numbers,
    verdict,
    statement="Linformer can keep the same rank for any number of tokens.",
    source=Paper("Linformer: Self-Attention with Linear Complexity", 2020, "https://arxiv.org/abs/2006.04768"),
    place=Place("error", {"against": "length"}, variants=("softmax", "linformer")),
    experiment="Linformer with segment means (untrained) has a fixed rank, a quarter of the shortest length, while "
    "this input grows. At each length, its matrix and the best matrix of that rank are compared with softmax's "
    "matrix.",
    rule="Two conditions: (1) Linformer's error grows no faster than n to the power {flat}, for n tokens. (2) Its "
    "error is at most {useful} at the longest length. The claim holds if both conditions are met. Otherwise it holds "
    "partly if the best matrix of the same rank has an error of at most {small} at the longest length. A better "
    "projection might then suffice.",
    bounds={"flat": 0.15, "useful": 0.5, "small": 0.1},
    finding="With rank {rank} at {longest} tokens, Linformer has an error of {error}. Uniform attention has an error "
    "of {uniform}, and the best matrix of that rank has an error of {floor}. From {shortest} tokens on, Linformer's "
    "error grows as n to the power {exponent}.",
    cases=(
        Case(
            finding="With rank {rank} at {longest} tokens, Linformer has an error of {error}. This is no clear gain "
            "over uniform attention ({uniform}). The best matrix of that rank has an error of {floor}. Linformer's "
            "large error cannot grow much more, so its exponent from {shortest} tokens on, {exponent}, means little.",
            applies=lambda numbers: numbers["error"] >= NO_BETTER * numbers["uniform"],
        ),
    ),
    quantities=(
        Quantity("exponent", "exponent of the error", digits=2),
        Quantity("error", "Linformer's error, longest input"),
        Quantity("floor", "error of the best matrix"),
        Quantity("uniform", "error of uniform attention"),
        Quantity("rank", "rank"),
        Quantity("shortest", "shortest input", "tokens"),
        Quantity("longest", "longest input", "tokens"),
        FUTURE,
    ),
    figure=Figure(x="n", y="error", by="matrix", x_title="tokens n", y_title="relative error", log="x"),
    notes=(MEASURED_UNMASKED,),
    noncausal_method=LINFORMER,
    needs=SMALLEST * TIMES[-1],
    measures_lengths=True,
)
