"""Claim: the rows of a double softmax sum to one without a division."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, Verdict, values
from attention_core.ops.linear.features import MAPS

DOUBLE, LANDMARKS, OTHER, MASKED = "double softmax", "over landmarks", "elu + 1", "causal mask"
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


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the deviation in the form that the input uses; ``PARTLY`` if only the unmasked form is normalized."""
    if numbers["off"] > bounds["exact"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["used"] <= bounds["exact"] else Verdict.PARTLY


CLAIM = Claim(
    measure,
    numbers,
    verdict,
    statement="A softmax over query features times a softmax over key positions needs no division, because every row "
    "already sums to one.",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("inside", {"inside": "efficient", "step": "3"}),
    experiment="The double softmax is the product of these two softmaxes. Row sums are computed for four products: "
    "(1) the double softmax, (2) the double softmax over landmarks, (3) a product with another feature map (elu + "
    "1), and (4) the double softmax with a causal mask.",
    rule="On a causal model, the double softmax is judged with and without a causal mask. On other inputs, it is "
    "judged without a mask. The claim holds if every row sum of the double softmax is within {exact} of one. It "
    "holds partly if this is only true without the mask.",
    bounds={"exact": 1e-4},
    finding="Without a mask, every row sum of the double softmax is within {off} of one. With the feature map elu + "
    "1, row sums reach {other}. With a causal mask, the smallest row sum of the double softmax is {hidden}.",
    quantities=(
        Quantity("off", "largest deviation from 1, unmasked", bound=True),
        Quantity("used", "largest deviation from 1, this input"),
        Quantity("hidden", "smallest row sum, causal mask"),
        Quantity("other", "largest row sum, elu + 1"),
    ),
    figure=Figure(x="product", y="sum", by="row", x_title="product", y_title="row sum", kind="bars", log="y"),
)
