"""Claim: attention to every k-th key (atrous) costs 1/k as much as full attention; local attention has linear cost."""

from collections.abc import Iterator, Sequence

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.cost_counts import CostRow, cost_rows, exponent
from attention_core.claims.rule import Condition, Numbers, parts

K = 4
"""Stride of atrous attention and window of local attention."""
FULL, ATROUS, LOCAL = "Full attention", "Atrous", "Local"
ATTENTIONS = {
    FULL: registry.get("softmax"),
    ATROUS: registry.get("atrous", stride=K),
    LOCAL: registry.get("local", window=K),
}


def measure(inputs: ExperimentInput) -> Iterator[CostRow]:
    """Count the costs of the attentions at growing lengths, without a causal mask.

    With a causal mask, the number of skipped blocks depends on the block size, which would blur the comparison.
    """
    return cost_rows(inputs, {name: attention.attend for name, attention in ATTENTIONS.items()})


def numbers(rows: Sequence[CostRow]) -> Numbers:
    """Return the cost ratios at the longest length, and local attention's growth over the longer half of lengths."""
    full, atrous, local = (values(rows, "multiply_adds", variant=name)[-1] for name in ATTENTIONS)
    lengths = values(rows, "n", variant=LOCAL)
    longer = [row for row in rows if row.n >= lengths[(len(lengths) - 1) // 2]]
    return {
        "saving": full / atrous,
        "local": exponent(longer, LOCAL, "multiply_adds"),
        "cheaper": full / local,
        "longest": lengths[-1],
    }


CLAIM = Claim(
    statement="Atrous attention (every k-th key) costs 1/k as much as full attention. The cost of local attention "
    "(only nearby keys) grows in proportion to the number of tokens.",
    short="atrous and local attention compute less",
    source=articles.STANDARD_TO_SPARSE,
    place=Place("masks", {"masks_part": "numbers"}, variants=("softmax", f"local~window~{K}", f"atrous~stride~{K}")),
    experiment="Cost is counted in multiply-adds at increasing lengths of this input, without a causal mask and with k "
    "= 4. Atrous attention allows keys at distances that are multiples of k. Local attention allows keys at a distance "
    "of at most k. Local attention runs in blocks of tokens, so on an input of only one or two blocks, it costs almost "
    "as much as full attention.",
    rule="Cost is counted in multiply-adds for atrous attention (every k-th key) and local attention (nearby keys). "
    "The claim holds if two conditions are met. (1) At the longest length, full attention costs {k} ± {off} times as "
    "much as atrous attention with k = {k}. (2) Over the longer half of the lengths, the cost of local attention "
    "grows no faster than n to the power {linear}, where n is the number of tokens. The claim partly holds if only "
    "one condition is met.",
    bounds={"k": K, "off": 0.2, "linear": 1.2},
    verdict=parts(Condition("saving", "<=", "off", around="k"), Condition("local", "<=", "linear")),
    finding="Atrous attention allows every fourth key, so it computes one in four scores. At {longest} tokens, full "
    "attention costs {saving}× as much. The cost of local attention (nearby keys only) grows as nᵖ for n tokens, with "
    "p = {local}; p nears 1 only for long inputs.",
    details="At {longest} tokens, full attention costs {cheaper}× as much as local attention.",
    quantities=(
        Quantity("saving", "cost of full attention ÷ cost of atrous attention"),
        Quantity("local", "growth exponent p of local attention's cost (nᵖ for n tokens)"),
        Quantity("cheaper", "multiply-adds of full attention ÷ multiply-adds of local attention at the longest length"),
        Quantity("longest", "longest measured length", "tokens"),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True), y=Axis("multiply_adds", "multiply-adds per head", log=True), by="variant"
    ),
    needs=5,
    measures_lengths=True,
)
