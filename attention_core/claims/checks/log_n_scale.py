"""Claim: multiplying logits by log n keeps softmax's entropy steady, and has no effect on squared ReLU."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
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
        steered = HomogeneityTask(source=inputs.source, n=n, variants=(squared,), factor=factor, causal=causal)
        for found in inputs.rows_of_selected_heads(homogeneity.run(steered, load=inputs.load)):
            yield ScaleRow(variant=SCALED_SQUARED, n=n, head=found.head, entropy=found.entropy)


def numbers(rows: Sequence[ScaleRow]) -> Numbers:
    """Return how fast ``exp(entropy)``, the keys a row attends to, grows with n up to the base length and beyond it.

    Also return by how much the scale changes the entropies of softmax and of squared ReLU.
    """
    lengths = sorted({row.n for row in rows})
    middle = base(lengths[-1])

    def found(variant: str, part: Sequence[int]) -> list[float]:
        return [row.entropy for row in rows if row.variant == variant and row.n in part]

    def growth(variant: str, part: Sequence[int]) -> float:
        return fit_power(part, [math.exp(fmean(found(variant, [n]))) for n in part]).exponent

    def moved(plain: str, scaled: str) -> float:
        # Rows of both are in the same order: by length, then by head.
        both = zip(found(plain, lengths), found(scaled, lengths), strict=True)
        return max(abs(after - before) for before, after in both)

    inside, outside = [n for n in lengths if n <= middle], [n for n in lengths if n >= middle]
    return {
        "scaled": growth(SCALED, inside),
        "plain": growth(PLAIN, inside),
        "scaled_beyond": growth(SCALED, outside),
        "plain_beyond": growth(PLAIN, outside),
        "base": middle,
        "longest": lengths[-1],
        "softmax": moved(PLAIN, SCALED),
        "squared": moved(SQUARED, SCALED_SQUARED),
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
    key="log_n_scale",
    number=13,
    statement="Logits multiplied by log n keep the entropy of softmax attention steady as a text grows, also beyond "
    "the length of training; squared ReLU divided by its sum cannot be steered so, as no factor on the logits changes "
    "it.",
    source=articles.ENTROPY_INVARIANCE,
    place=Place("entropy", variants=("softmax", "relu2")),
    experiment="At growing lengths of this input the entropy of rows is taken with logits as they are and multiplied "
    "by the log of how many keys a row sees, over the log of a base length; for softmax and for squared ReLU. The base "
    "stands for the length of training, beyond which no text is read here, so it is the middle one of the lengths.",
    rule="The keys a row attends to, exp(entropy), grow like n^a. Holds where with the scale a lies within ± {steady}, "
    "up to the base length and beyond it; partly where it does so on one side, or the scale brings a down to at most "
    "{flatter}% of its size on both. Squared ReLU's entropy must not move by more than {moved} nats.",
    bounds={"steady": 0.1, "flatter": 67, "moved": 0.001},
    finding="Up to the base length of {base} tokens the keys a row attends to grow like n to the power {plain} without "
    "the scale and {scaled} with it, beyond it up to {longest} tokens {plain_beyond} and {scaled_beyond}; the scale "
    "moves softmax's entropy by up to {softmax} nats, squared ReLU's by {squared} nats.",
    quantities=(
        Quantity("scaled", "exponent up to the base length, with the scale"),
        Quantity("plain", "exponent up to the base length, without it"),
        Quantity("scaled_beyond", "exponent beyond the base length, with the scale"),
        Quantity("plain_beyond", "exponent beyond the base length, without it"),
        Quantity("base", "base length", "tokens"),
        Quantity("longest", "longest length", "tokens"),
        Quantity("softmax", "most that softmax's entropy moves", "nats"),
        Quantity("squared", "most that squared ReLU's entropy moves", "nats"),
    ),
    figure=Figure(x="n", y="entropy", by="variant", x_title="tokens n", y_title="entropy of a row (nats)", log_x=True),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=16,
    measures_lengths=True,
)
