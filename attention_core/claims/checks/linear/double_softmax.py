"""Claim: efficient attention, the product of a softmax of queries and a softmax of keys, has rows that sum to one.

No division by the row sum is needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.ops.linear.features import FEATURE_MAPS

DOUBLE, LANDMARKS, OTHER, MASKED = (
    "double softmax",
    "double softmax over averaged tokens",
    "elu + 1 features",
    "double softmax with causal mask",
)
SMALLEST, LARGEST = "smallest row sum", "largest row sum"


@dataclass(frozen=True, slots=True, kw_only=True)
class SumRow:
    """The smallest or the largest row sum (``row``) in one head, for one product of query and key features.

    ``used`` is true if the product is a double softmax whose mask, causal or none, is the input's own mask.
    """

    product: str
    used: bool
    row: str
    head: int
    sum: float


def measure(inputs: ExperimentInput) -> Iterator[SumRow]:
    """Yield the smallest and the largest row sum of each of the four products, ``DOUBLE`` to ``MASKED``, per head."""
    qkv = inputs.record()
    efficient = registry.get("efficient").weights(qkv.q, qkv.k)
    products = {
        DOUBLE: efficient,
        LANDMARKS: registry.get("landmark").weights(qkv.q, qkv.k),
        MASKED: efficient.tril(),
        OTHER: FEATURE_MAPS["elu+1"](qkv.q) @ FEATURE_MAPS["elu+1"](qkv.k).mT,
    }
    used = (MASKED,) if qkv.causal else (DOUBLE, LANDMARKS)
    for product, weights in products.items():
        sums = metrics.row_sums(weights)
        for row, extreme in ((SMALLEST, sums.amin(-1)), (LARGEST, sums.amax(-1))):
            yield from inputs.head_rows(SumRow, product=product, used=product in used, row=row, sum=extreme)


def numbers(rows: Sequence[SumRow]) -> Numbers:
    """Return the largest deviations of a row sum from one, and two extreme row sums.

    The deviations are measured without a mask, and with the input's own mask. The extremes are the smallest row sum
    of the double softmax with a causal mask, and the largest row sum with elu + 1 features.
    """
    return {
        "off": max(abs(row.sum - 1) for row in rows if row.product in (DOUBLE, LANDMARKS)),
        "used": max(abs(total - 1) for total in values(rows, "sum", used=True)),
        "hidden": min(values(rows, "sum", product=MASKED)),
        "other": max(values(rows, "sum", product=OTHER)),
    }


CLAIM = Claim(
    statement="If linear attention applies softmax to queries and keys separately, it need not divide by the row "
    "sums, because every row of weights already sums to 1.",
    short="double softmax needs no division by row sums",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("inside", {"inside": "efficient", "step": "2"}),
    experiment="The double softmax applies one softmax to the queries and another to the keys, and multiplies the "
    "two results. A row sum is the sum of all weights of one query. Row sums are computed for four methods. Three "
    "of them are a double softmax: without a mask, over landmarks, and with a causal mask. The fourth method is "
    "linear attention with the feature map elu + 1, before it divides by the row sums. Landmarks are means of "
    "neighbouring tokens. A causal mask hides later tokens.",
    rule="The double softmax applies one softmax to the components of each query and another to each component of the "
    "keys, over all tokens. It multiplies the two results. A row sum is the sum of all weights of one query. The claim "
    "holds if two conditions are met. (1) Without a mask, every row sum of the double softmax is within {exact} of 1, "
    "with and without landmarks (averaged tokens). (2) If the input is causal (queries attend to no later tokens), "
    "every row sum with a causal mask is also within {exact} of 1. The claim partly holds if only the first condition "
    "is met.",
    bounds={"exact": 1e-4},
    verdict=Rule(requires=Condition("off", "<=", "exact"), holds=Condition("used", "<=", "exact")),
    finding="In the double softmax, a query's weights are a weighted average of distributions over the keys, each of "
    "which sums to 1. The row sum of the weights is therefore also 1. Without a mask, the largest deviation of a row "
    "sum from 1 is {off}.",
    details="The double softmax applies one softmax to the queries and another to the keys. A causal mask removes "
    "weights on later tokens, so the row sums of the double softmax can be below 1: the smallest is {hidden}. "
    "Linear attention with the feature map elu + 1 must divide by its row sums, which are as large as {other}.",
    quantities=(
        Quantity("off", "largest |row sum − 1| without a mask", bound=True),
        Quantity("used", "largest |row sum − 1| with the input's mask, if any"),
        Quantity("hidden", "smallest row sum of the double softmax with a causal mask"),
        Quantity("other", "largest row sum of linear attention with the feature map elu + 1, before normalisation"),
    ),
    figure=Figure(
        x=Axis("product", "method"),
        y=Axis("sum", "row sum (sum of a query's weights)", log=True),
        by="row",
        kind="bars",
    ),
)
