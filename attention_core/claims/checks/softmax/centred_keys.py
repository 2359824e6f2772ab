"""Claim: the second-order Taylor series of the softmax weights is closer to softmax than that of the exponential."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, values
from attention_core.claims.conditions import check_not_uniform
from attention_core.claims.rule import Condition, Measured, Numbers, parts
from attention_core.experiments.error import uniform
from attention_core.metrics.approximation import relative_error

SOFTMAX, EXPONENTIAL, CENTRED = (
    "expansion of softmax",
    "expansion of the exponential",
    "expansion of the exponential, mean key subtracted",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """The relative error, in per cent, of the matrix of one series compared with softmax's matrix, in one head."""

    series: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[SeriesRow]:
    """Yield the errors of the three series per head, in float64."""
    qkv = inputs.record()
    q, k = qkv.q.double(), qkv.k.double()
    wanted = registry.get("softmax").weights(q, k, causal=qkv.causal)
    check_not_uniform(relative_error(uniform(qkv.n, causal=qkv.causal).double().expand_as(wanted), wanted))
    centred = k - k.mean(-2, keepdim=True)
    compared = {SOFTMAX: ("centred_taylor", k), EXPONENTIAL: ("taylor2", k), CENTRED: ("taylor2", centred)}
    for series, (key, keys) in compared.items():
        error = 100 * relative_error(registry.get(key).weights(q, keys, causal=qkv.causal), wanted)
        yield from inputs.head_rows(SeriesRow, series=series, error=error)


def numbers(rows: Sequence[SeriesRow]) -> Numbers:
    """Return the median error of each series and how often the series of softmax has the smaller error."""
    own, exponential, centred = (values(rows, "error", series=each) for each in (SOFTMAX, EXPONENTIAL, CENTRED))
    closer = sum(a < b for a, b in zip(own, exponential, strict=True))
    return {
        "closer": 100 * closer / len(own),
        "heads": len(own),
        "own": median(own),
        "exponential": median(exponential),
        "centred": median(centred),
    }


CLAIM = Claim(
    statement="A parabola (second-order Taylor expansion) can approximate softmax. Expanding the whole formula, with "
    "its division by the row sum, comes closer to softmax than expanding only the exponential.",
    short="expanding the whole softmax is closer",
    source=articles.TAYLOR_EXPANSIONS,
    place=Place("matrices", variants=("softmax", "centred_taylor", "taylor2")),
    experiment="A second-order expansion replaces a function with a parabola. In every head, two expansions are "
    "compared with softmax's matrix: (1) the expansion of softmax itself, and (2) the expansion of its exponential, "
    "followed by the usual division by row sums. The first expansion subtracts the mean key from all keys. The "
    "second expansion is therefore also measured with the mean key subtracted. The matrix error is the size of the "
    "difference from softmax's matrix, divided by the size of that matrix.",
    measure=measure,
    numbers=numbers,
    rule="An expansion's matrix error is the relative difference of its matrix from softmax's matrix. Two "
    "conditions: (1) The Taylor expansion of the whole softmax has a smaller matrix error than the expansion of only "
    "its exponential in at least {closer}% of the heads. (2) The median matrix error over heads is also smaller for "
    "the expansion of the whole softmax. The claim holds if both conditions are met. It holds partly if only one is "
    "met.",
    bounds={"closer": 75},
    verdict=parts(Condition("own", "<", Measured("exponential")), Condition("closer", ">=", "closer")),
    finding="The expansion of the whole softmax also expands the division by the row sum. In {closer}% of the "
    "heads, it has a smaller matrix error than the expansion of only the exponential.",
    details="In the median head, the matrix error is {own}% for the expansion of the whole softmax and {exponential}% "
    "for the expansion of only the exponential. If the mean key is first subtracted from all keys, the expansion of "
    "only the exponential has a matrix error of {centred}%.",
    quantities=(
        Quantity(
            "closer",
            "share of heads where expanding the whole softmax gives a smaller matrix error than expanding only the "
            "exponential",
            "%",
            brief="heads where expanding the whole softmax gives the smaller error",
            of_heads=True,
        ),
        Quantity(
            "own",
            "matrix error of the Taylor expansion of the whole softmax, median over heads",
            "%",
            brief="matrix error in the median head",
        ),
        Quantity("exponential", "matrix error of the Taylor expansion of only the exponential, median over heads", "%"),
        Quantity(
            "centred",
            "matrix error of the Taylor expansion of only the exponential, with the mean key subtracted, median over "
            "heads",
            "%",
        ),
        Quantity("heads", "number of heads"),
    ),
    figure=Figure(x="head", y="error", by="series", x_title="head", y_title="matrix error (%)", log="y"),
)
