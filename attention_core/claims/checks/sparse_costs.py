"""Claim: atrous attention costs 1/k of full attention, and the cost of local attention is linear in n."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from attention_core import articles, registry
from attention_core.benchmarking.counting import count
from attention_core.claims.claim import Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.experiments.lengths import ladder
from attention_core.metrics.fit import fit_power
from attention_core.variant import Attention

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
    """Yield the counted cost of each attention at each length of the input."""
    return costs(inputs, ATTENTIONS)


def costs(inputs: ExperimentInput, attentions: Mapping[str, Attention]) -> Iterator[WorkRow]:
    """Count the multiply-adds per head of attentions at growing lengths, without a causal mask.

    With a causal mask, the number of skipped blocks depends on the block size, which would blur the comparison.
    """
    for n in ladder(inputs.longest):
        qkv = inputs.record(n)
        for part, attention in attentions.items():
            counts = count(partial(attention.attend, *qkv.tensors))
            adds = counts.multiply_adds / qkv.heads
            yield WorkRow(variant=attention.title, part=part, n=n, multiply_adds=adds)


def numbers(rows: Sequence[WorkRow]) -> Numbers:
    """Return the cost ratios at the longest length, and local attention's growth over the longer half of lengths."""
    full, atrous, local = ([row.multiply_adds for row in rows if row.part == part] for part in ATTENTIONS)
    lengths = [row.n for row in rows if row.part == "local"]
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
    key="sparse_costs",
    number=14,
    statement="Atrous attention with stride k costs one k-th of full attention; the cost of local attention with "
    "window k grows in proportion to n.",
    source=articles.STANDARD_TO_SPARSE,
    place=Place("masks", {"masks_part": "numbers"}, variants=("softmax", "local", "atrous")),
    experiment="With k = 4, the multiply-adds that each algorithm really does without a causal mask are counted at "
    "growing lengths of this input. Local attention runs in blocks of tokens, so that a short input, of one block or "
    "two, still costs nearly as many as all its pairs.",
    rule="Holds where full attention costs {k} ± {off}× what atrous does at the longest length, and local grows "
    "at most like n to the power {linear} over the longer half of the lengths; partly where one of the two is so.",
    bounds={"k": K, "off": 0.2, "linear": 1.2},
    finding="At {longest} tokens full attention costs {saving}× as much as atrous and {cheaper}× as much as "
    "local, whose cost grows like n to the power {local}.",
    quantities=(
        Quantity("saving", "cost of full over atrous"),
        Quantity("local", "exponent of local"),
        Quantity("cheaper", "cost of full over local"),
        Quantity("longest", "longest length", "tokens"),
    ),
    figure=Figure(
        x="n",
        y="multiply_adds",
        by="variant",
        x_title="tokens n",
        y_title="multiply-adds per head",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=5,
    measures_lengths=True,
)
