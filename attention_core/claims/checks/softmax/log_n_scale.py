"""Claim: multiplying logits by log n keeps softmax's entropy steady as the number of tokens n grows.

The multiplication has no effect on the entropy of squared ReLU.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule, all_of, any_of
from attention_core.experiments import entropy_length, homogeneity
from attention_core.experiments.homogeneity import HomogeneityTask
from attention_core.experiments.lengths import measured_lengths
from attention_core.metrics.fit import fit_power

PLAIN, SCALED = "Softmax", "Softmax, log n scale"
SQUARED, SCALED_SQUARED = "Squared ReLU", "Squared ReLU, log n scale"


def base_length(longest: int) -> int:
    """Return the length at which the scale is 1: the middle one of the measured lengths up to ``longest``."""
    lengths = measured_lengths(longest)
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
        registry.get("softmax_log_n", base_length=base_length(inputs.longest)).word: SCALED,
        squared: SQUARED,
    }
    for task in entropy_length.tasks(inputs.source, tuple(names), longest=inputs.longest, causal=causal):
        for row in inputs.rows_of_selected_heads(entropy_length.run(task, load=inputs.load)):
            yield ScaleRow(variant=names[task.variant], n=task.n, head=row.head, entropy=row.entropy)
    for n in measured_lengths(inputs.longest):
        factor = math.log(n) / math.log(base_length(inputs.longest))
        scaled = HomogeneityTask(source=inputs.source, n=n, variants=(squared,), factor=factor, causal=causal)
        for result in inputs.rows_of_selected_heads(homogeneity.run(scaled, load=inputs.load)):
            yield ScaleRow(variant=SCALED_SQUARED, n=n, head=result.head, entropy=result.entropy)


def numbers(rows: Sequence[ScaleRow]) -> Numbers:
    """Return the growth exponents of ``exp(entropy)``, the effective number of keys, up to the base length and beyond.

    Also return by how much the scale changes the entropies of softmax and of squared ReLU.
    """
    lengths = sorted({row.n for row in rows})
    middle = base_length(lengths[-1])

    def growth(variant: str, part: Sequence[int]) -> float:
        means = [math.exp(fmean(values(rows, "entropy", variant=variant, n=n))) for n in part]
        return fit_power(part, means).exponent

    def change(plain: str, scaled: str) -> float:
        # Pairing the rows is correct, because both variants' rows are in the same order: by length, then by head.
        before, after = (values(rows, "entropy", variant=variant) for variant in (plain, scaled))
        return max(abs(b - a) for a, b in zip(before, after, strict=True))

    inside, outside = [n for n in lengths if n <= middle], [n for n in lengths if n >= middle]
    return {
        "scaled": growth(SCALED, inside),
        "plain": growth(PLAIN, inside),
        "scaled_beyond": growth(SCALED, outside),
        "plain_beyond": growth(PLAIN, outside),
        "base": middle,
        "softmax": change(PLAIN, SCALED),
        "squared": change(SQUARED, SCALED_SQUARED),
    }


def is_steady(end: str) -> Condition:
    """Return the condition that the scaled entropy is steady in one range of lengths.

    ``end`` is the end of the quantities' names: empty up to the base length, ``_beyond`` beyond it.
    """
    return Condition(f"scaled{end}", "<=", "steady", around=0.0)


def is_flatter(end: str) -> Condition:
    """Return the condition that the scale clearly slows the growth of entropy; ``end`` is as in ``is_steady``."""
    return Condition(
        f"scaled{end}", "<=", lambda n, bounds: bounds["flatter"] / 100 * abs(n[f"plain{end}"]), around=0.0
    )


CLAIM = Claim(
    statement="As the number of tokens n grows, softmax spreads each query's weight more evenly (higher entropy). "
    "Multiplying the logits by log n prevents this, but has no effect if squares replace the exponentials (squared "
    "ReLU).",
    short="a log n factor keeps entropy constant",
    source=articles.ENTROPY_INVARIANCE,
    place=Place("entropy", variants=("softmax", "relu2")),
    experiment="The entropy of a query's weights measures how widely they are spread: exp(entropy) is the effective "
    "number of keys. Entropy is measured for growing numbers of tokens, with and without the log n factor on the "
    "logits. The factor is the logarithm of the number of allowed keys, divided by the logarithm of a base length. "
    "The base length is the middle of the measured lengths and represents the length used in training. Squared "
    "ReLU, which replaces softmax's exponential with the square of each positive logit, is measured in the same way.",
    rule="The effective number of keys, over which a query spreads its weight, grows as nᵖ, where n is the number of "
    "tokens. The exponent p is fitted in two ranges of lengths: up to the base length (the middle one) and beyond it. "
    "The log n factor on the logits is proportional to the logarithm of the number of keys that a query can attend to. "
    "The claim holds if this factor brings p to between −{steady} and {steady} in both ranges. It partly holds if p is "
    "between these limits in only one range, or if |p| with the factor is at most {flatter}% of |p| without it in both "
    "ranges. For comparison, the same measurement is made with squared ReLU in place of softmax. The claim can hold or "
    "partly hold only if the factor changes the entropy of squared ReLU by at most {moved} nats.",
    bounds={"steady": 0.1, "flatter": 67, "moved": 0.001},
    verdict=Rule(
        requires=Condition("squared", "<=", "moved"),
        holds=all_of(is_steady(""), is_steady("_beyond")),
        partly=any_of(is_steady(""), is_steady("_beyond"), all_of(is_flatter(""), is_flatter("_beyond"))),
    ),
    finding="On longer inputs, more keys compete, and the log n factor on the logits makes softmax sharper. For n up "
    "to {base} tokens, the effective number of keys per query grows as nᵖ, with p = {plain} without the factor and p "
    "= {scaled} with the factor.",
    details="With more than {base} tokens, the effective number of keys per query, exp(entropy), grows as nᵖ, with p "
    "= {plain_beyond} without the log n factor. The factor changes softmax's entropy by up to {softmax} nats. "
    "Squared ReLU replaces the exponentials with squares. The factor then cancels when each row is divided by its "
    "sum.",
    quantities=(
        Quantity("scaled", "exponent p of the effective number of keys (nᵖ) at small n, with the log n factor"),
        Quantity("plain", "exponent p of the effective number of keys (nᵖ) at small n, without the log n factor"),
        Quantity("scaled_beyond", "exponent p of the effective number of keys (nᵖ) at large n, with the log n factor"),
        Quantity(
            "plain_beyond", "exponent p of the effective number of keys (nᵖ) at large n, without the log n factor"
        ),
        Quantity(
            "base", "base length, which separates small from large n; the log n factor is 1 at this length", "tokens"
        ),
        Quantity("softmax", "largest change of softmax's entropy caused by the log n factor", "nats"),
        Quantity("squared", "change of squared ReLU's entropy caused by the log n factor", "nats"),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True),
        y=Axis("entropy", "entropy (nats): log of the effective number of keys"),
        by="variant",
        main=(PLAIN, SCALED),
    ),
    needs=16,
    measures_lengths=True,
)
