"""Claim: atrous attention costs 1/k of full attention, and the cost of local attention is linear in n."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from attention_core import articles, registry
from attention_core.benchmarking.counting import count
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, parts
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


CLAIM = Claim(
    statement="Atrous attention, which allows every k-th key, costs 1/k of full attention. Local attention with a "
    "window of k tokens has a cost that is linear in the number of tokens n.",
    source=articles.STANDARD_TO_SPARSE,
    place=Place("masks", {"masks_part": "numbers"}, variants=("softmax", "local", "atrous")),
    experiment="Cost is counted in multiply-adds at increasing lengths of this input, without a causal mask and with k "
    "= 4. Atrous attention allows keys at distances that are multiples of k. Local attention allows keys at a distance "
    "of at most k. Local attention runs in blocks of tokens, so an input of only one or two blocks costs almost as "
    "much as full attention.",
    measure=measure,
    numbers=numbers,
    rule="Cost is counted in multiply-adds. Two conditions: (1) At the longest length, full attention costs {k} ± "
    "{off} times as much as atrous attention. (2) Over the longer half of the lengths, the cost of local attention "
    "grows no faster than n to the power {linear}, where n is the number of tokens. The claim holds if both conditions "
    "are met. It holds partly if only one is met.",
    bounds={"k": K, "off": 0.2, "linear": 1.2},
    verdict=parts(Condition("saving", "<=", "off", around="k"), Condition("local", "<=", "linear")),
    finding="At {longest} tokens, full attention costs {saving}× as much as atrous attention and {cheaper}× as much as "
    "local attention. The cost of local attention grows as n to the power {local}, where n is the number of tokens.",
    quantities=(
        Quantity("saving", "cost of full attention ÷ cost of atrous attention"),
        Quantity("local", "exponent of the growth of local attention's cost with length"),
        Quantity("cheaper", "cost of full attention ÷ cost of local attention"),
        Quantity("longest", "longest measured length", "tokens"),
    ),
    figure=Figure(
        x="n", y="multiply_adds", by="variant", x_title="tokens n", y_title="multiply-adds per head", log="xy"
    ),
    needs=5,
    measures_lengths=True,
)
