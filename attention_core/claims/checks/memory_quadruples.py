"""Claim: doubling n quadruples the memory of full attention's scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from attention_core import registry
from attention_core.benchmarking.counting import count
from attention_core.claims.claim import DECIMALS, Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.experiments.lengths import ladder
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper

HELD, FUSED = "all scores at once", "fused, block by block"
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
        for way, call in (
            (HELD, partial(softmax.weights, qkv.q, qkv.k)),
            (FUSED, partial(softmax.attend, *qkv.tensors)),
        ):
            yield MemoryRow(way=way, n=qkv.n, elements=count(call).largest_elements / qkv.heads)


def numbers(rows: Sequence[MemoryRow]) -> Numbers:
    """Return the growth factors per doubling of n, from power laws fitted over all lengths."""
    held, fused = ([row for row in rows if row.way == way] for way in (HELD, FUSED))
    factor, fused_factor = (
        round(2 ** fit_power([row.n for row in own], [row.elements for row in own]).exponent, DECIMALS)
        for own in (held, fused)
    )
    return {"factor": factor, "fused": fused_factor, "longest": held[-1].n, "elements": held[-1].elements}


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the distance of the growth factor from four."""
    off = abs(numbers["factor"] - 4)
    return Verdict.HOLDS if off <= bounds["holds"] else Verdict.PARTLY if off <= bounds["partly"] else Verdict.FAILS


CLAIM = Claim(
    key="memory_quadruples",
    number=1,
    statement="Doubling the number of tokens quadruples the memory that full attention's scores take.",
    source=Paper("Generating Long Sequences with Sparse Transformers", 2019, "https://arxiv.org/abs/1904.10509"),
    place=Place("timing", {"t_side": "memory"}, variants=("softmax", "linear")),
    experiment="Full attention is computed at growing lengths of this input, once with all scores at once and once by "
    "a fused kernel that never keeps them, and the numbers in the largest tensor are counted.",
    rule="Holds where a doubling multiplies the scores by 4 ± {holds}, partly within ± {partly}.",
    bounds={"holds": 0.1, "partly": 0.5},
    finding="Each doubling of n multiplies the scores by {factor}; at {longest} tokens one head holds {elements} of "
    "them. The fused kernel gives the same output and keeps none: a doubling multiplies its largest tensor by {fused}.",
    quantities=(
        Quantity("factor", "factor per doubling"),
        Quantity("fused", "factor per doubling, fused"),
        Quantity("longest", "longest input", "tokens"),
        Quantity("elements", "scores in one head"),
    ),
    figure=Figure(
        x="n",
        y="elements",
        by="way",
        x_title="tokens n",
        y_title="numbers in one head's largest tensor",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
    measures_lengths=True,
    theorem="n tokens have n² pairs, and all scores at once are one number for each.",
)
