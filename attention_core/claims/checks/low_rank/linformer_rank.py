"""Claim: Linformer's rank, its number of averaged keys, can stay constant as the number of tokens grows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE, FUTURE, future_percent
from attention_core.claims.rule import Condition, Numbers, Rule, all_of
from attention_core.metrics.fit import fit_power

LINFORMER, BEST, UNIFORM = "Linformer", "best matrix of Linformer's rank", "equal weights"
LENGTH_FACTORS = (4, 6, 8, 12, 16)
"""Lengths as multiples of the rank. They are whole numbers, because segments of unequal length add errors of their own.
All are well above the rank, so that every projection loses much information."""
MIN_RANK = 4
"""Smallest rank judged. At rank one, Linformer is uniform attention for any projection; at two or three it is little
better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """The relative error of one matrix of one head at one length, ``n`` tokens.

    ``future`` (``FUTURE``): for a causal model, the percentage of softmax's attention on later tokens without a mask.
    """

    n: int
    rank: int
    future: float
    matrix: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[RankRow]:
    """Yield the errors of Linformer, the best matrix of the same rank and uniform attention, per head and length."""
    rank = inputs.longest // LENGTH_FACTORS[-1]
    softmax, linformer = registry.get("softmax"), registry.get("linformer", rank=rank)
    for factor in LENGTH_FACTORS:
        qkv = inputs.record(factor * rank)
        exact, hidden = softmax.weights(qkv.q, qkv.k), future_percent(qkv)
        errors = {
            LINFORMER: metrics.relative_error(linformer.weights(qkv.q, qkv.k), exact),
            BEST: metrics.truncated_svd_error(exact, rank),
            UNIFORM: metrics.uniform_error(exact),
        }
        for matrix, error in errors.items():
            floored = [max(each, FLOAT32_TOLERANCE) for each in error.tolist()]
            yield from inputs.head_rows(RankRow, n=qkv.n, rank=rank, future=hidden, matrix=matrix, error=floored)


def numbers(rows: Sequence[RankRow]) -> Numbers:
    """Return the median errors over heads at the longest length, and p in Linformer's median error ~ n^p."""

    def median_error(matrix: str, n: int) -> float:
        return median(values(rows, "error", matrix=matrix, n=n))

    lengths, last = sorted({row.n for row in rows}), max(rows, key=lambda row: row.n)
    return {
        "exponent": fit_power(lengths, [median_error(LINFORMER, n) for n in lengths]).exponent,
        "error": median_error(LINFORMER, last.n),
        "floor": median_error(BEST, last.n),
        "uniform": median_error(UNIFORM, last.n),
        "rank": last.rank,
        "shortest": lengths[0],
        "longest": last.n,
        "future": last.future,
    }


CLAIM = Claim(
    statement="Linformer replaces all keys by a fixed number of averages of keys. To reach the same error relative "
    "to softmax, a long text needs no more averages than a short text.",
    short="Linformer's rank need not grow with length",
    source=registry.variant("linformer").source,
    place=Place("error", {"against": "length"}, variants=("softmax", "linformer~rank~{rank}")),
    experiment="Linformer averages the keys into a fixed number of segment means, and this number is its rank. "
    "These averages are not learned. The rank is a quarter of the shortest measured length. The longest measured "
    "length is four times the shortest. At each length, Linformer's matrix is compared with softmax's matrix. The "
    "comparison is repeated for the matrix of the same rank that is closest to softmax. The matrix error is the "
    "size of the difference from softmax's matrix, divided by the size of softmax's matrix.",
    rule="Linformer averages the keys into the same number of means (its rank) at every length. Its matrix error is "
    "the relative difference of its matrix from softmax's matrix (median over heads). The claim holds if two "
    "conditions are met. (1) This error grows no faster than n to the power {flat}, where n is the number of tokens. "
    "(2) The matrix error is at most {useful} at the longest length. Otherwise, the claim partly holds if, at the "
    "longest length, the best possible matrix of the same rank has a matrix error of at most {small}. In this case, "
    "better averages of the keys might be accurate enough.",
    bounds={"flat": 0.15, "useful": 0.5, "small": 0.1},
    verdict=Rule(
        holds=all_of(Condition("exponent", "<=", "flat"), Condition("error", "<=", "useful")),
        partly=Condition("floor", "<=", "small"),
    ),
    finding="Linformer learns its averages of keys in training, but this check uses {rank} plain means without "
    "training. At {longest} tokens, the matrix error (difference from softmax's matrix, median over heads) is {error} "
    "with these means and {uniform} with equal weights.",
    details="The best possible matrix of Linformer's rank ({rank}) has a matrix error of {floor}. From {shortest} "
    "tokens on, Linformer's matrix error changes as n to the power {exponent}, where n is the number of tokens. If "
    "this error is already near the error of equal weights, it can hardly grow further.",
    quantities=(
        Quantity("exponent", "growth exponent p of Linformer's matrix error (nᵖ for n tokens)", digits=2),
        Quantity("error", "Linformer's matrix error at the longest length, median over heads", share=True),
        Quantity("floor", "matrix error of the best matrix of Linformer's rank, median over heads", share=True),
        Quantity("uniform", "matrix error of uniform attention (equal weights), median over heads", share=True),
        Quantity("rank", "rank of Linformer's matrix (number of keys after averaging)"),
        Quantity("shortest", "shortest measured length", "tokens"),
        Quantity("longest", "longest measured length", "tokens"),
        FUTURE,
    ),
    figure=Figure(x=Axis("n", "tokens n", log=True), y=Axis("error", "matrix error (%)"), by="matrix", percent=True),
    noncausal_method=LINFORMER,
    needs=MIN_RANK * LENGTH_FACTORS[-1],
    measures_lengths=True,
)
