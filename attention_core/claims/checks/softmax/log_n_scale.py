"""Claim: multiplying logits by log n keeps softmax's entropy steady, and has no effect on squared ReLU."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, Verdict, values
from attention_core.experiments import entropy_length, homogeneity
from attention_core.experiments.homogeneity import HomogeneityTask
from attention_core.experiments.lengths import ladder
from attention_core.metrics.fit import fit_power

PLAIN, SCALED = "Softmax", "Softmax, log n scale"
SQUARED, SCALED_SQUARED = "Squared ReLU", "Squared ReLU, log n scale"


def base(longest: int) -> int:
    """Return the length at which the scale is 1: the middle one of the measured lengths."""
    lengths = ladder(longest)
    return lengths[len(lengths) // 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRow:
    """The entropy of one head at one length in nats, mean over queries."""

    variant: str
    n: int
    head: int
    entropy: float


def measure(inputs: ExperimentInput) -> Iterator[ScaleRow]:
    """Yield the entropy of every head with and without the scale, at lengths up to the base length and beyond it."""
    causal = inputs.record(inputs.longest).causal
    squared = registry.get("relu2", normalizer="sum").word
    names = {
        registry.get("softmax").word: PLAIN,
        registry.get("softmax_log_n", base_length=base(inputs.longest)).word: SCALED,
        squared: SQUARED,
    }
    for task in entropy_length.tasks(inputs.source, tuple(names), longest=inputs.longest, causal=causal):
        for row in inputs.rows_of_selected_heads(entropy_length.run(task, load=inputs.load)):
            yield ScaleRow(variant=names[task.variant], n=task.n, head=row.head, entropy=row.entropy)
    for n in ladder(inputs.longest):
        factor = math.log(n) / math.log(base(inputs.longest))
        scaled = HomogeneityTask(source=inputs.source, n=n, variants=(squared,), factor=factor, causal=causal)
        for found in inputs.rows_of_selected_heads(homogeneity.run(scaled, load=inputs.load)):
            yield ScaleRow(variant=SCALED_SQUARED, n=n, head=found.head, entropy=found.entropy)


def numbers(rows: Sequence[ScaleRow]) -> Numbers:
    """Return how fast ``exp(entropy)``, the keys a row attends to, grows with n up to the base length and beyond it.

    Also return by how much the scale changes the entropies of softmax and of squared ReLU.
    """
    lengths = sorted({row.n for row in rows})
    middle = base(lengths[-1])

    def growth(variant: str, part: Sequence[int]) -> float:
        means = [math.exp(fmean(values(rows, "entropy", variant=variant, n=n))) for n in part]
        return fit_power(part, means).exponent

    def change(plain: str, scaled: str) -> float:
        # Rows of both are in the same order: by length, then by head.
        before, after = (values(rows, "entropy", variant=variant) for variant in (plain, scaled))
        return max(abs(b - a) for a, b in zip(before, after, strict=True))

    inside, outside = [n for n in lengths if n <= middle], [n for n in lengths if n >= middle]
    return {
        "scaled": growth(SCALED, inside),
        "plain": growth(PLAIN, inside),
        "scaled_beyond": growth(SCALED, outside),
        "plain_beyond": growth(PLAIN, outside),
        "base": middle,
        "longest": lengths[-1],
        "softmax": change(PLAIN, SCALED),
        "squared": change(SQUARED, SCALED_SQUARED),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge how steady the scaled entropy is on both sides of the base length; squared ReLU must not change."""
    if numbers["squared"] > bounds["moved"]:
        return Verdict.FAILS
    sides = [(abs(numbers["scaled" + end]), abs(numbers["plain" + end])) for end in ("", "_beyond")]
    steady = [scaled <= bounds["steady"] for scaled, _ in sides]
    if any(steady):
        return Verdict.of_parts(*steady)
    flatter = all(100 * scaled <= bounds["flatter"] * plain for scaled, plain in sides)
    return Verdict.PARTLY if flatter else Verdict.FAILS


CLAIM = Claim(
    measure,
    numbers,
    verdict,
    statement="Scaling logits by log n keeps softmax's entropy steady for any number of tokens n. The scale does not "
    "affect squared ReLU divided by its row sum.",
    source=articles.ENTROPY_INVARIANCE,
    place=Place("entropy", variants=("softmax", "relu2")),
    experiment="The entropy of the rows is measured at growing lengths, with and without the scale. The scale is the "
    "logarithm of the number of allowed keys, divided by the logarithm of a base length. The base length is the "
    "middle of the measured lengths and represents the length used in training.",
    rule="The number of keys that a row attends to, exp(entropy), grows as n to a power a. This power is fitted up "
    "to the base length and again beyond it. The claim holds if, with the scale, a is within ± {steady} in both "
    "ranges. It holds partly if this is true in one range, or if the scale reduces a to at most {flatter}% in both "
    "ranges. In all cases, squared ReLU's entropy must not change by more than {moved} nats.",
    bounds={"steady": 0.1, "flatter": 67, "moved": 0.001},
    finding="Up to the base length, the number of attended keys grows as n to the power {plain} without the scale "
    "and {scaled} with the scale. Beyond the base length, the powers are {plain_beyond} without the scale and "
    "{scaled_beyond} with it. The scale changes softmax's entropy by up to {softmax} nats and squared ReLU's by up "
    "to {squared} nats.",
    quantities=(
        Quantity("scaled", "exponent up to the base length, scaled"),
        Quantity("plain", "exponent up to the base length, unscaled"),
        Quantity("scaled_beyond", "exponent beyond the base length, scaled"),
        Quantity("plain_beyond", "exponent beyond the base length, unscaled"),
        Quantity("base", "base length", "tokens"),
        Quantity("longest", "longest length", "tokens"),
        Quantity("softmax", "entropy change, softmax", "nats"),
        Quantity("squared", "entropy change, squared ReLU", "nats"),
    ),
    figure=Figure(x="n", y="entropy", by="variant", x_title="tokens n", y_title="entropy of a row (nats)", log="x"),
    needs=16,
    measures_lengths=True,
)
