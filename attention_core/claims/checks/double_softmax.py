"""Claim: the rows of a double softmax sum to one without a division."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.ops.linear.features import MAPS

DOUBLE, LANDMARKS, OTHER, HIDDEN = "double softmax", "over landmarks", "elu + 1", "future hidden"
SMALLEST, LARGEST = "smallest row", "largest row"


@dataclass(frozen=True, slots=True, kw_only=True)
class SumRow:
    """The smallest or the largest row sum in one head of a product; ``used`` if the input attends in that form."""

    product: str
    used: bool
    row: str
    head: int
    sum: float


def measure(inputs: ExperimentInput) -> Iterator[SumRow]:
    """Yield the smallest and the largest row sum of every product per head."""
    qkv = inputs.record()
    efficient = registry.get("efficient").weights(qkv.q, qkv.k)
    products = {
        DOUBLE: efficient,
        LANDMARKS: registry.get("landmark").weights(qkv.q, qkv.k),
        HIDDEN: efficient.tril(),
        OTHER: MAPS["elu+1"](qkv.q) @ MAPS["elu+1"](qkv.k).mT,
    }
    used = (HIDDEN,) if qkv.causal else (DOUBLE, LANDMARKS)
    for product, weights in products.items():
        sums = metrics.row_sums(weights)
        for row, values in ((SMALLEST, sums.amin(-1)), (LARGEST, sums.amax(-1))):
            for head, value in inputs.by_head(values):
                yield SumRow(product=product, used=product in used, row=row, head=head, sum=value)


def numbers(rows: Sequence[SumRow]) -> Numbers:
    """Return the largest deviation of a row sum from one, and the extreme row sums of the other products."""
    return {
        "off": max(abs(row.sum - 1) for row in rows if row.product in (DOUBLE, LANDMARKS)),
        "used": max(abs(row.sum - 1) for row in rows if row.used),
        "hidden": min(row.sum for row in rows if row.product == HIDDEN),
        "other": max(row.sum for row in rows if row.product == OTHER),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the deviation in the form that the input uses; ``PARTLY`` if only the unmasked form is normalized."""
    if numbers["off"] > bounds["exact"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["used"] <= bounds["exact"] else Verdict.PARTLY


CLAIM = Claim(
    key="double_softmax",
    number=3,
    statement="A softmax over the queries' features times a softmax over the keys' positions is already normalised: "
    "every row sums to one, and nothing needs to be divided.",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("inside", {"inside": "efficient", "step": "3"}),
    experiment="The rows of the product are summed up: of the double softmax, of the one over landmarks, of another "
    "feature map, and of the double softmax once the future is cut away.",
    rule="Holds where no row of a double softmax is further than {exact} from one in the form in which this input "
    "attends (a causal model hides the future), partly where that is so only while every token sees all.",
    bounds={"exact": 1e-4},
    finding="While every token sees all, a row of the double softmax is at most {off} from one (with elu + 1 instead, "
    "rows reach {other}); with the future hidden rows fall to {hidden} and must be divided after all.",
    quantities=(
        Quantity("off", "furthest from one, all seen", bound=True),
        Quantity("used", "the same as this input attends"),
        Quantity("hidden", "smallest row sum, future hidden"),
        Quantity("other", "largest row sum with elu + 1"),
    ),
    figure=Figure(x="product", y="sum", by="row", x_title="product", y_title="sum of a row", kind="bars", log_y=True),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
)
