"""Claim: the second-order series of softmax is closer to softmax than the second-order series of its exponential."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles, registry
from attention_core.claims.claim import (
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    Verdict,
    check_not_uniform,
)
from attention_core.experiments.error import uniform
from attention_core.metrics.error import relative_error

SOFTMAX, EXPONENTIAL, CENTRED = "softmax expanded", "exponential expanded", "exponential expanded, centred keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """The error of one series in one head.

    Attributes:
        series: ``SOFTMAX``, ``EXPONENTIAL`` or ``CENTRED``.
        head: the head.
        error: relative error of the series' matrix compared with softmax's matrix, in per cent.
    """

    series: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[SeriesRow]:
    """Yield the errors of the three series per head, in float64.

    Raises:
        UntestableError: if all tokens have the same weight.
    """
    qkv = inputs.record()
    q, k = qkv.q.double(), qkv.k.double()
    wanted = registry.get("softmax").weights(q, k, causal=qkv.causal)
    check_not_uniform(relative_error(uniform(qkv.n, causal=qkv.causal).double().expand_as(wanted), wanted))
    centred = k - k.mean(-2, keepdim=True)
    for series, key, keys in (
        (SOFTMAX, "centred_taylor", k),
        (EXPONENTIAL, "taylor2", k),
        (CENTRED, "taylor2", centred),
    ):
        errors = 100 * relative_error(registry.get(key).weights(q, keys, causal=qkv.causal), wanted)
        for head, error in inputs.by_head(errors):
            yield SeriesRow(series=series, head=head, error=error)


def numbers(rows: Sequence[SeriesRow]) -> Numbers:
    """Return the median error of each series and how often the series of softmax has the smaller error."""
    own, exponential, centred = (
        [row.error for row in rows if row.series == series] for series in (SOFTMAX, EXPONENTIAL, CENTRED)
    )
    closer = sum(a < b for a, b in zip(own, exponential, strict=True))
    return {
        "closer": 100 * closer / len(own),
        "heads": len(own),
        "own": median(own),
        "exponential": median(exponential),
        "centred": median(centred),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Compare the errors in the median head, and count the heads where the series of softmax is closer."""
    return Verdict.of_parts(numbers["own"] < numbers["exponential"], numbers["closer"] >= bounds["closer"])


CLAIM = Claim(
    key="centred_keys",
    number=22,
    statement="Expanding softmax itself to second order comes closer to softmax than expanding only its exponential.",
    source=articles.TAYLOR_EXPANSIONS,
    place=Place("matrices", variants=("softmax", "centred_taylor", "taylor2")),
    experiment="Two second-order series are compared with softmax's matrix in every head: the series of softmax as a "
    "whole, whose rows sum to one, and the series of the exponential, each row divided by its sum. Softmax's own "
    "series subtracts the mean key from every key, so the second series is also shown with the mean key subtracted.",
    rule="Holds where the series of softmax has a smaller error than the series of the exponential in the median head "
    "and in at least {closer}% of the heads; partly where only one of the two is true.",
    bounds={"closer": 75},
    finding="The series of softmax has the smaller error in {closer}% of {heads} heads. In the median head its error "
    "is {own}%, that of the exponential's series {exponential}%, or {centred}% with the mean key subtracted.",
    quantities=(
        Quantity("closer", "heads where the series of softmax has the smaller error", "%"),
        Quantity("own", "error, series of softmax, median head", "%"),
        Quantity("exponential", "error, series of the exponential, median head", "%"),
        Quantity("centred", "the same with the mean key subtracted", "%"),
        Quantity("heads", "heads"),
    ),
    figure=Figure(
        x="head", y="error", by="series", x_title="head", y_title="error of the series' matrix (%)", log_y=True
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=2,
)
