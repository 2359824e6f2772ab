"""Logits multiplied by log n keep softmax's entropy steady; squared ReLU has no such handle."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from attention_core import registry
from attention_core.experiments import entropy_length, homogeneity
from attention_core.experiments.claims.claim import Ask, Claim, Figure, Quantity, Verdict, column
from attention_core.experiments.homogeneity import HomogeneityTask
from attention_core.experiments.lengths import ladder
from attention_core.experiments.task import Row
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper

PLAIN, SCALED = "Softmax", "Softmax, log n scale"
SQUARED, SCALED_SQUARED = "Squared ReLU", "Squared ReLU, log n scale"


def measure(ask: Ask) -> list[Row]:
    """Entropy of every head at growing lengths, with and without logits scaled by ``log n / log longest``."""
    causal = ask.record(ask.longest).causal
    squared = registry.get("relu2", normalizer="sum").word
    names = {
        registry.get("softmax").word: PLAIN,
        registry.get("softmax_log_n", base_length=ask.longest).word: SCALED,
        squared: SQUARED,
    }
    rows: list[Row] = []
    for task in entropy_length.tasks(ask.source, tuple(names), longest=ask.longest, causal=causal):
        rows += [
            {"variant": names[task.variant], "n": task.n, "head": row["head"], "entropy": row["entropy"]}
            for row in ask.seen(entropy_length.run(task, load=ask.load))
        ]
    for n in ladder(ask.longest):
        factor = math.log(n) / math.log(ask.longest)
        steered = HomogeneityTask(source=ask.source, n=n, variants=(squared,), factor=factor, causal=causal)
        rows += [
            {"variant": SCALED_SQUARED, "n": n, "head": row["head"], "entropy": row["entropy"]}
            for row in ask.seen(homogeneity.run(steered, load=ask.load))
        ]
    return rows


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """How fast ``exp(entropy)``, the keys a row attends to, grows with n; and what the scale does to squared ReLU."""
    lengths = sorted(set(column(rows, "n")))

    def growth(variant: str) -> float:
        return fit_power(
            lengths, [math.exp(fmean(column(rows, "entropy", variant=variant, n=n))) for n in lengths]
        ).exponent

    def moved(plain: str, scaled: str) -> float:
        # Rows of both come in one order: by length, then by head.
        both = zip(column(rows, "entropy", variant=plain), column(rows, "entropy", variant=scaled), strict=True)
        return max(abs(after - before) for before, after in both)

    return {
        "plain": growth(PLAIN),
        "scaled": growth(SCALED),
        "softmax": moved(PLAIN, SCALED),
        "squared": moved(SQUARED, SCALED_SQUARED),
    }


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By how steady the scaled entropy is, if squared ReLU is indifferent."""
    if numbers["squared"] > bounds["moved"]:
        return Verdict.FAILS
    scaled, plain = abs(numbers["scaled"]), abs(numbers["plain"])
    if scaled <= bounds["steady"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if 100 * scaled <= bounds["flatter"] * plain else Verdict.FAILS


CLAIM = Claim(
    key="log_n_scale",
    number=13,
    statement="Logits multiplied by log n keep the entropy of softmax attention steady as a text grows; squared ReLU "
    "divided by its sum cannot be steered so, as no factor on the logits changes it.",
    source=Paper("Entropy invariance and the scale of attention", 2021, "https://kexue.fm/archives/8823"),
    experiment="At growing lengths of this input the entropy of rows is taken with logits as they are and multiplied "
    "by the log of how many keys a row sees, over the log of the longest length; for softmax and for squared ReLU.",
    rule="The keys a row attends to, exp(entropy), grow like n^a. Holds where with the scale a lies within ± {steady}, "
    "partly where the scale brings a down to at most {flatter} % of its size; and squared ReLU's entropy must not move "
    "by more than {moved} nats.",
    bounds={"steady": 0.1, "flatter": 67, "moved": 0.001},
    finding="The keys a row attends to grow like n to the power {plain} without the scale and {scaled} with it; the "
    "scale moves softmax's entropy by up to {softmax} nats, squared ReLU's by {squared} nats.",
    quantities=(
        Quantity(name="scaled", label="exponent with the scale"),
        Quantity(name="plain", label="exponent without the scale"),
        Quantity(name="softmax", label="most that softmax's entropy moves", unit="nats"),
        Quantity(name="squared", label="most that squared ReLU's entropy moves", unit="nats"),
    ),
    figure=Figure(x="n", y="entropy", by="variant", x_title="tokens n", y_title="entropy of a row (nats)", log_x=True),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
)
