"""Claim: atrous attention costs 1/k of full attention, and the cost of local attention is linear in n."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from attention_core import articles, registry
from attention_core.benchmarking.counting import count
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, Verdict, values
from attention_core.experiments.lengths import ladder
from attention_core.metrics.fit import fit_power

K = 4
"""Stride of atrous attention and window of local attention."""
ATTENTIONS = {
    "full": registry.get("softmax"),
    "atrous": registry.get("atrous", stride=K),
    "local": registry.get("local", window=K),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRow:
    """The counted multiply-adds per head of one attention at one length; ``part`` is its key in ``ATTENTIONS``."""

    variant: str
    part: str
    n: int
    multiply_adds: float


def measure(inputs: ExperimentInput) -> Iterator[WorkRow]:
    """Count the multiply-adds per head of the attentions at growing lengths, without a causal mask.

    With a causal mask, the number of skipped blocks depends on the block size, which would blur the comparison.
    """
    for n in ladder(inputs.longest):
        qkv = inputs.record(n)
        for part, attention in ATTENTIONS.items():
            adds = count(partial(attention.attend, *qkv.tensors)).multiply_adds / qkv.heads
            yield WorkRow(variant=attention.title, part=part, n=n, multiply_adds=adds)


def numbers(rows: Sequence[WorkRow]) -> Numbers:
    """Return the cost ratios at the longest length, and local attention's growth over the longer half of lengths."""
    full, atrous, local = (values(rows, "multiply_adds", part=part) for part in ATTENTIONS)
    lengths = values(rows, "n", part="local")
    longer = slice((len(lengths) - 1) // 2, None)
    return {
        "saving": full[-1] / atrous[-1],
        "local": fit_power(lengths[longer], local[longer]).exponent,
        "cheaper": full[-1] / local[-1],
        "longest": lengths[-1],
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge both parts of the statement: the ratio for atrous attention and the growth for local attention."""
    return Verdict.of_parts(abs(numbers["saving"] - bounds["k"]) <= bounds["off"], numbers["local"] <= bounds["linear"])


CLAIM = Claim(
    measure,
    numbers,
    verdict,
    statement="Atrous attention with stride k costs 1/k of full attention, and the cost of local attention with "
    "window k is linear in the number of tokens n.",
    source=articles.STANDARD_TO_SPARSE,
    place=Place("masks", {"masks_part": "numbers"}, variants=("softmax", "local", "atrous")),
    experiment="The multiply-adds of full, atrous and local attention with k = 4 are counted at increasing lengths "
    "of this input, without a causal mask. Local attention runs in blocks of tokens, so an input of only one or two "
    "blocks costs almost as much as full attention.",
    rule="Two conditions: (1) At the longest length, full attention costs {k} ± {off} times as much as atrous "
    "attention. (2) Over the longer half of the lengths, the cost of local attention grows no faster than n to the "
    "power {linear}. The claim holds if both conditions are met. It holds partly if only one is met.",
    bounds={"k": K, "off": 0.2, "linear": 1.2},
    finding="At {longest} tokens, full attention costs {saving}× as much as atrous attention and {cheaper}× as much "
    "as local attention. The cost of local attention grows as n to the power {local}, for n tokens.",
    quantities=(
        Quantity("saving", "full cost ÷ atrous cost"),
        Quantity("local", "exponent of local cost"),
        Quantity("cheaper", "full cost ÷ local cost"),
        Quantity("longest", "longest length", "tokens"),
    ),
    figure=Figure(
        x="n", y="multiply_adds", by="variant", x_title="tokens n", y_title="multiply-adds per head", log="xy"
    ),
    needs=5,
    measures_lengths=True,
)
