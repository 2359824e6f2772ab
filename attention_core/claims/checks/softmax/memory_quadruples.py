"""Claim: doubling n quadruples the memory of full attention's scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from attention_core import registry
from attention_core.benchmarking.counting import count
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, values
from attention_core.claims.conditions import DECIMALS
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments.lengths import ladder
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper

MATRIX, FUSED = "whole matrix", "fused kernel"
"""Two ways to compute the same attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """The size of the largest tensor that one way allocates at one length: ``elements``, in numbers per head."""

    way: str
    n: int
    elements: float


def measure(inputs: ExperimentInput) -> Iterator[MemoryRow]:
    """Yield the size of the largest tensor at each length for both ways."""
    softmax = registry.get("softmax")
    for n in ladder(inputs.longest):
        qkv = inputs.record(n)
        ways = {MATRIX: partial(softmax.weights, qkv.q, qkv.k), FUSED: partial(softmax.attend, *qkv.tensors)}
        for way, call in ways.items():
            yield MemoryRow(way=way, n=qkv.n, elements=count(call).largest_elements / qkv.heads)


def numbers(rows: Sequence[MemoryRow]) -> Numbers:
    """Return the growth factors per doubling of n, from power laws fitted over all lengths."""

    def factor(way: str) -> float:
        fitted = fit_power(values(rows, "n", way=way), values(rows, "elements", way=way))
        return round(2**fitted.exponent, DECIMALS)

    longest = [row for row in rows if row.way == MATRIX][-1]
    return {"factor": factor(MATRIX), "fused": factor(FUSED), "longest": longest.n, "elements": longest.elements}


CLAIM = Claim(
    statement="Doubling the number of tokens quadruples the memory of full attention's scores.",
    source=Paper("Generating Long Sequences with Sparse Transformers", 2019, "https://arxiv.org/abs/1904.10509"),
    place=Place("timing", {"t_side": "memory"}, variants=("softmax", "linear")),
    experiment="Full attention is run on this input at increasing lengths, once with an explicit score matrix and once "
    "with a fused kernel, which never stores this matrix. The numbers in the largest tensor are counted.",
    measure=measure,
    numbers=numbers,
    rule="The claim holds if doubling the number of tokens multiplies the size of the score matrix by 4 ± {holds}. It "
    "holds partly if this factor is within 4 ± {partly}.",
    bounds={"holds": 0.1, "partly": 0.5},
    verdict=Rule(
        holds=Condition("factor", "<=", "holds", around=4.0), partly=Condition("factor", "<=", "partly", around=4.0)
    ),
    finding="Each doubling of the number of tokens multiplies the size of the score matrix by {factor}. At {longest} "
    "tokens, the matrix has {elements} numbers per head. A fused kernel gives the same output without storing the "
    "matrix. Each doubling multiplies the kernel's largest tensor by {fused}.",
    quantities=(
        Quantity("factor", "growth of the score matrix per doubling of the length"),
        Quantity("fused", "growth of the fused kernel's largest tensor per doubling of the length"),
        Quantity("longest", "longest measured length", "tokens"),
        Quantity("elements", "scores per head at the longest length"),
    ),
    figure=Figure(
        x="n", y="elements", by="way", x_title="tokens n", y_title="largest tensor (numbers per head)", log="xy"
    ),
    needs=8,
    measures_lengths=True,
    theorem="n tokens have n² query–key pairs, and the score matrix has one number for each pair.",
)
