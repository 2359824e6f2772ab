"""Claim: a second-order Taylor series of the whole softmax is more accurate than a series of only its exponential."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import check_not_uniform
from attention_core.claims.rule import Condition, Measured, Numbers, parts
from attention_core.experiments.error import uniform_weights
from attention_core.metrics.approximation import relative_error

SOFTMAX, EXPONENTIAL, CENTRED = (
    "Taylor series of softmax",
    "Taylor series of exp",
    "Taylor series of exp, mean key subtracted",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """The relative error, in per cent, of one Taylor series compared with softmax's matrix, in one head."""

    series: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[SeriesRow]:
    """Yield the errors per head, in float64, of the series of softmax, of exp, and of exp with centred keys."""
    qkv = inputs.record()
    q, k = qkv.q.double(), qkv.k.double()
    softmax = registry.get("softmax").weights(q, k, causal=qkv.causal)
    check_not_uniform(relative_error(uniform_weights(qkv.n, causal=qkv.causal).double().expand_as(softmax), softmax))
    centred = k - k.mean(-2, keepdim=True)
    compared = {SOFTMAX: ("centred_taylor", k), EXPONENTIAL: ("taylor2", k), CENTRED: ("taylor2", centred)}
    for series, (key, keys) in compared.items():
        error = 100 * relative_error(registry.get(key).weights(q, keys, causal=qkv.causal), softmax)
        yield from inputs.head_rows(SeriesRow, series=series, error=error)


def numbers(rows: Sequence[SeriesRow]) -> Numbers:
    """Return each series' median error, and how often the series of softmax has a smaller error than that of exp."""
    softmax, exponential, centred = (values(rows, "error", series=each) for each in (SOFTMAX, EXPONENTIAL, CENTRED))
    closer = sum(a < b for a, b in zip(softmax, exponential, strict=True))
    return {
        "closer": 100 * closer / len(softmax),
        "own": median(softmax),
        "exponential": median(exponential),
        "centred": median(centred),
    }


CLAIM = Claim(
    statement="Softmax can be approximated by a second-order Taylor series. A series of the whole formula, with its "
    "division by the row sum, comes closer to softmax than a series of only the exponential.",
    short="a Taylor series of softmax beats one of exp",
    source=articles.TAYLOR_EXPANSIONS,
    place=Place("matrices", variants=("softmax", "centred_taylor", "taylor2")),
    experiment="In every head, two second-order Taylor series are compared with softmax's matrix: (1) a series of "
    "softmax itself, and (2) a series of its exponential, followed by the usual division by row sums. The first "
    "series subtracts the mean key from all keys. The second is therefore measured with and without this subtraction. "
    "The matrix error is the norm of the difference from softmax's matrix, divided by the norm of softmax's matrix.",
    rule="A Taylor series of the whole softmax is compared with a series of only its exponential. The matrix error "
    "is the relative difference from softmax's matrix. The claim holds if two conditions are met. (1) In at least "
    "{closer}% of the heads, the series of the whole softmax has the smaller matrix error. (2) Its median matrix "
    "error over the heads is also smaller. The claim partly holds if only one condition is met.",
    bounds={"closer": 75},
    verdict=parts(Condition("own", "<", Measured("exponential")), Condition("closer", ">=", "closer")),
    finding="A Taylor series of the whole softmax also approximates the division by the row sum, not only the "
    "exponential. Its matrix error (difference from softmax's matrix) is smaller than that of a series of only the "
    "exponential in {closer}% of the heads.",
    details="If the mean key is first subtracted from all keys, the series of only the exponential has a matrix "
    "error of {centred}% (median over heads).",
    quantities=(
        Quantity(
            "closer",
            "heads where a Taylor series of softmax is more accurate than a series of the exponential",
            "%",
            of_heads=True,
        ),
        Quantity("own", "matrix error of the Taylor series of the whole softmax, median over heads", "%"),
        Quantity(
            "exponential",
            "matrix error if only softmax's exponential is replaced by its Taylor series, median over heads",
            "%",
        ),
        Quantity(
            "centred",
            "matrix error of the Taylor series of only the exponential, with the mean key subtracted, median over "
            "heads",
            "%",
        ),
    ),
    figure=Figure(x=Axis("head", "head"), y=Axis("error", "matrix error (%)", log=True), by="series", kind="points"),
)
