"""Claim: with a feature map in place of softmax, the cost of attention is linear in the number of tokens n."""

from collections.abc import Callable, Sequence

from torch import Tensor

from attention_core import articles, registry
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.cost_counts import DECIMALS, CostRow, cost_rows, exponent
from attention_core.claims.rule import Condition, Numbers, Rule, all_of

FULL, LINEAR = "full attention", "linear attention"
ATTEND: dict[str, Callable[..., Tensor]] = {
    FULL: lambda q, k, v: registry.get("softmax").weights(q, k) @ v,
    LINEAR: registry.get("linear").attend,
}


def numbers(rows: Sequence[CostRow]) -> Numbers:
    """Return the exponents with which costs grow with n, and the ratio of multiply-adds, full ÷ linear attention.

    The costs are the multiply-adds of both, and the memory of linear attention. The ratio is at the longest length.
    """
    full, linear = (values(rows, "multiply_adds", variant=variant) for variant in (FULL, LINEAR))
    return {
        "work": round(exponent(rows, LINEAR, "multiply_adds"), DECIMALS),
        "memory": round(exponent(rows, LINEAR, "peak"), DECIMALS),
        "full": round(exponent(rows, FULL, "multiply_adds"), DECIMALS),
        "saved": full[-1] / linear[-1],
        "longest": rows[-1].n,
    }


CLAIM = Claim(
    statement="Linear attention replaces softmax's exponential by the dot product of two feature vectors, one "
    "computed from the query and one from the key. Its cost grows in proportion to the number of tokens, so on long "
    "texts it costs less than full attention.",
    short="linear attention's cost grows linearly",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("timing", {"t_side": "work"}, variants=("softmax", "linear")),
    experiment="Linear attention applies the feature map elu + 1 to queries and keys, so the products of keys and "
    "values can be summed once for all queries. Full attention and linear attention are run on this input at "
    "increasing lengths. Two costs are counted: the work in multiply-adds, and the peak memory, which is the largest "
    "count of numbers stored at one time.",
    measure=lambda inputs: cost_rows(inputs, ATTEND),
    rule="Work is the number of multiply-adds, and n is the number of tokens. The claim holds if two conditions are "
    "met. (1) The work and the peak memory of linear attention grow no faster than n to the power {linear}. (2) Full "
    "attention does more work than linear attention at the longest length. The claim partly holds if only the first "
    "condition is met.",
    bounds={"linear": 1.05},
    verdict=Rule(
        requires=all_of(Condition("work", "<=", "linear"), Condition("memory", "<=", "linear")),
        holds=Condition("saved", ">", 1.0),
    ),
    finding="Linear attention sums the products of keys and values only once, and all queries share this sum. For n "
    "tokens, its work (multiply-adds) therefore grows as nᵖ, with p = {work} instead of p = {full} for full attention.",
    quantities=(
        Quantity("work", "growth exponent p of linear attention's multiply-adds (nᵖ for n tokens)"),
        Quantity("memory", "growth exponent p of linear attention's peak memory (nᵖ for n tokens)"),
        Quantity("full", "growth exponent p of full attention's multiply-adds (nᵖ for n tokens)"),
        Quantity("saved", "multiply-adds of full attention ÷ multiply-adds of linear attention"),
        Quantity("longest", "longest measured length", "tokens"),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True), y=Axis("multiply_adds", "multiply-adds per head", log=True), by="variant"
    ),
    needs=8,
    measures_lengths=True,
)
