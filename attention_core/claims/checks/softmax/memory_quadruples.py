"""Claim: doubling n quadruples the memory of full attention's scores."""

from collections.abc import Callable, Sequence

from torch import Tensor

from attention_core import registry
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.cost_counts import DECIMALS, CostRow, cost_rows, exponent
from attention_core.claims.rule import Condition, Numbers, Rule

MATRIX, FUSED = "whole matrix", "fused kernel (stores no matrix)"
ATTEND: dict[str, Callable[..., Tensor]] = {
    MATRIX: lambda q, k, v: registry.get("softmax").weights(q, k),
    FUSED: registry.get("softmax").attend,
}
"""Two ways to compute the same attention."""


def numbers(rows: Sequence[CostRow]) -> Numbers:
    """Return by what factor the largest tensor grows if n doubles, from power laws fitted over all lengths."""
    return {
        "factor": round(2 ** exponent(rows, MATRIX, "largest"), DECIMALS),
        "fused": round(2 ** exponent(rows, FUSED, "largest"), DECIMALS),
        "longest": rows[-1].n,
        "elements": values(rows, "largest", variant=MATRIX)[-1],
    }


CLAIM = Claim(
    statement="Doubling the number of tokens quadruples the memory that full attention needs for its scores.",
    short="doubling tokens quadruples score memory",
    source=registry.variant("sparse").source,
    place=Place("timing", {"t_side": "memory"}, variants=("softmax", "linear")),
    experiment="Full attention is run on this input at increasing lengths, once with an explicit score matrix and "
    "once with a fused kernel, which never stores this matrix. The number of elements in the largest tensor is "
    "counted.",
    measure=lambda inputs: cost_rows(inputs, ATTEND),
    rule="The claim holds if doubling the number of tokens multiplies the size of the score matrix by 4 ± {holds}. "
    "It partly holds if this factor is within 4 ± {partly}.",
    bounds={"holds": 0.1, "partly": 0.5},
    verdict=Rule(
        holds=Condition("factor", "<=", "holds", around=4.0), partly=Condition("factor", "<=", "partly", around=4.0)
    ),
    finding="The score matrix has one number for each pair of a query and a key. Each doubling of the number of "
    "tokens multiplies its size by {factor}. A fused kernel never stores this matrix, and its largest tensor grows "
    "only by a factor of {fused}.",
    details="At {longest} tokens, the score matrix has {elements} numbers per head.",
    quantities=(
        Quantity("factor", "factor by which the size of the score matrix grows if the number of tokens doubles"),
        Quantity("fused", "factor by which the fused kernel's largest tensor grows if the number of tokens doubles"),
        Quantity("longest", "longest measured length", "tokens"),
        Quantity("elements", "number of query–key scores per head at the longest length"),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True),
        y=Axis("largest", "largest tensor (numbers per head)", log=True),
        by="variant",
    ),
    needs=8,
    measures_lengths=True,
    theorem="n tokens have n² query–key pairs, and the score matrix has one number for each pair.",
)
