"""Claim: linear attention spreads so evenly that its output is closer to the mean of all values than to softmax's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments.error import uniform_weights
from attention_core.variant import Paper

MEAN, SOFTMAX = "mean of all values", "output of softmax"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceRow:
    """The distance from the output of linear attention to a target, in one head.

    Attributes:
        target: ``MEAN``, the mean of all values, or ``SOFTMAX``, the output of softmax.
        head: the head.
        distance: the distance, divided by the distance between the mean and the output of softmax.
    """

    target: str
    head: int
    distance: float


def measure(inputs: ExperimentInput) -> Iterator[DistanceRow]:
    """Yield how far the output of linear attention is from the mean of all values and from the output of softmax.

    Raises:
        UntestableError: if the output of softmax is the mean of all values in some head.
    """
    qkv = inputs.record()
    q, k, v = (x.double() for x in qkv.tensors)
    softmax, linear = (registry.get(key).weights(q, k, causal=qkv.causal) @ v for key in ("softmax", "linear"))
    mean = uniform_weights(qkv.n, causal=qkv.causal).double() @ v
    spread = (softmax - mean).flatten(1).norm(dim=-1)
    if (spread <= 1e-9 * v.flatten(1).norm(dim=-1)).any():
        raise UntestableError(
            "In at least one head, softmax itself returns the mean of all values. Choose an input with larger logits."
        )
    for target, other in ((MEAN, mean), (SOFTMAX, softmax)):
        yield from inputs.head_rows(
            DistanceRow, target=target, distance=(linear - other).flatten(1).norm(dim=-1) / spread
        )


def numbers(rows: Sequence[DistanceRow]) -> Numbers:
    """Return the median of each distance over heads, and the percentage of heads in which the mean is closer."""
    mean, softmax = (values(rows, "distance", target=each) for each in (MEAN, SOFTMAX))
    return {
        "mean": median(mean),
        "softmax": median(softmax),
        "heads": 100 * sum(a < b for a, b in zip(mean, softmax, strict=True)) / len(mean),
    }


CLAIM = Claim(
    statement="Linear attention with the features elu + 1 spreads its weight so evenly that its output is closer to "
    "the mean of all values than to softmax's output.",
    short="linear attention is close to a plain mean",
    source=Paper("The Devil in Linear Transformer", 2022, "https://arxiv.org/abs/2210.10340", authors="Qin et al."),
    place=Place("picture", variants=("softmax", "linear")),
    experiment="In every head, the output of linear attention is compared with two others: the output of softmax, "
    "and the mean of all values, which attention with equal weights returns. If the model is causal, the mean at "
    "each token covers only the values up to this token. Distances are divided by the distance between the mean and "
    "softmax's output.",
    rule="The claim holds if, in at least {most}% of the heads, the output of linear attention is closer to the mean "
    "of all values than to softmax's output. It partly holds if this is true in at least {some}% of the heads.",
    bounds={"most": 95, "some": 50},
    verdict=Rule(holds=Condition("heads", ">=", "most"), partly=Condition("heads", ">=", "some")),
    finding="Attention with equal weights returns the mean of all values. The output of linear attention is closer to "
    "this mean than to softmax's output in {heads}% of the heads.",
    details="The output of linear attention has a distance of {mean} from the mean of all values and of {softmax} "
    "from softmax's output (medians over heads). Here, 100% is the distance between the mean and softmax's output.",
    quantities=(
        Quantity(
            "heads",
            "heads where linear attention is closer to the mean of the values than to softmax",
            "%",
            of_heads=True,
        ),
        Quantity(
            "mean",
            "distance of linear attention's output from the mean of all values ÷ distance of softmax's output from "
            "this mean, median over heads",
            share=True,
        ),
        Quantity(
            "softmax",
            "distance of linear attention's output from softmax's output ÷ distance of the mean of all values from "
            "softmax's output, median over heads",
            share=True,
        ),
    ),
    figure=Figure(
        x=Axis("target", "output that linear attention is compared with"),
        y=Axis("distance", "distance from linear attention's output (% of the distance between mean and softmax)"),
        by="target",
        kind="bars",
        percent=True,
    ),
)
