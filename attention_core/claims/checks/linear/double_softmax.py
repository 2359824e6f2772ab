"""Claim: efficient attention, the product of a softmax of queries and one of keys, has rows that sum to one.

No division by the row sum is needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.ops.linear.features import MAPS

DOUBLE, LANDMARKS, OTHER, MASKED = (
    "double softmax",
    "double softmax over landmarks",
    "features elu + 1",
    "double softmax, causal mask",
)
SMALLEST, LARGEST = "smallest row sum", "largest row sum"


@dataclass(frozen=True, slots=True, kw_only=True)
class SumRow:
    """The smallest or the largest row sum of one product in one head.

    ``used`` is true for a double softmax with the input's own mask, causal or not.
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
        OTHER: MAPS["elu+1"](qkv.q) @ MAPS["elu+1"](qkv.k).mT,
    }
    used = (MASKED,) if qkv.causal else (DOUBLE, LANDMARKS)
    for product, weights in products.items():
        sums = metrics.row_sums(weights)
        for row, extreme in ((SMALLEST, sums.amin(-1)), (LARGEST, sums.amax(-1))):
            yield from inputs.head_rows(SumRow, product=product, used=product in used, row=row, sum=extreme)


def numbers(rows: Sequence[SumRow]) -> Numbers:
    """Return the largest deviation of a row sum from one, and the extreme row sums of the other products."""
    return {
        "off": max(abs(row.sum - 1) for row in rows if row.product in (DOUBLE, LANDMARKS)),
        "used": max(abs(total - 1) for total in values(rows, "sum", used=True)),
        "hidden": min(values(rows, "sum", product=MASKED)),
        "other": max(values(rows, "sum", product=OTHER)),
    }


CLAIM = Claim(
    statement="If softmax is applied to queries and keys separately, linear attention needs no division, because "
    "every row of weights already sums to 1.",
    short="double softmax needs no division",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("inside", {"inside": "efficient", "step": "3"}),
    experiment="The double softmax applies one softmax to the queries and another to the keys, and multiplies the "
    "two results. A row sum is the sum of all weights of one query. Row sums are computed for four products: (1) the "
    "double softmax, (2) the double softmax over landmarks, (3) linear attention's features elu + 1, and (4) the "
    "double softmax with a causal mask. Landmarks are means of neighbouring tokens. A causal mask hides later tokens.",
    measure=measure,
    numbers=numbers,
    rule="The double softmax multiplies a softmax over each query's features by a softmax over the keys' positions. "
    "A row sum is the sum of all weights of one query. Two conditions: (1) Without a mask, every row sum of the "
    "double softmax is within {exact} of one, with and without landmarks (averaged tokens). (2) If this model is "
    "causal, every row sum with a causal mask is also within {exact} of one. The claim holds if both conditions are "
    "met. It holds partly if only the first is met.",
    bounds={"exact": 1e-4},
    verdict=Rule(requires=Condition("off", "<=", "exact"), holds=Condition("used", "<=", "exact")),
    finding="Each query takes a weighted average of distributions over the keys. Each distribution sums to 1, so the "
    "query's weights also sum to 1. Without a mask, the largest deviation of a row sum from 1 is {off}.",
    details="A causal mask hides parts of the distributions, so row sums can be below 1. The smallest row sum is "
    "{hidden}. With linear attention's features elu + 1, rows are not normalised, and their sums reach {other}.",
    quantities=(
        Quantity(
            "off",
            "largest distance of a row sum of the double softmax from one, without a mask",
            bound=True,
            brief="distance of a row sum from 1 without a mask",
        ),
        Quantity(
            "used",
            "largest distance of a row sum of the double softmax from one, with this model's mask",
            brief="distance of a row sum from 1 with the model's mask",
        ),
        Quantity("hidden", "smallest row sum of the double softmax with a causal mask"),
        Quantity("other", "largest row sum with linear attention's features elu + 1"),
    ),
    figure=Figure(x="product", y="sum", by="row", x_title="product", y_title="row sum", kind="bars", log="y"),
)
