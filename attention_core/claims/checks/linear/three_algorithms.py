"""Claim: causal linear attention is a recurrent network; three algorithms give the output of its explicit matrix.

For n tokens and head size d, the algorithm that stores all states ("cumsum") needs less memory than the explicit matrix
only if n > d².
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from attention_core import articles, metrics, registry
from attention_core.benchmarking.counting import count
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError
from attention_core.claims.rule import Condition, Numbers, Rule, all_of
from attention_core.ops.linear.causal_scan import CHUNK

MATRIX, CUMSUM = "whole attention matrix", "cumulative sum"
MIN_HEAD_SIZE = math.isqrt(CHUNK // 2) + 1
"""Smallest head size d for which the longest length, 2d² tokens, is more than one chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRow:
    """The peak memory of one algorithm in numbers per head, and the difference of its output from that of ``MATRIX``.

    ``size`` is the head size used for ``elements``, the peak memory. It is below the input's head size d if the
    input has fewer than 2d² tokens.
    """

    algorithm: str
    n: int
    size: int
    elements: float
    difference: float


def measure(inputs: ExperimentInput) -> Iterator[AlgorithmRow]:
    """Yield the peak memory at lengths around ``size²``, and the differences of the outputs.

    Raises:
        UntestableError: if heads are so small that all these lengths fit in one chunk.
    """
    size = min(math.isqrt(inputs.longest // 2), inputs.record().q.shape[-1])
    if size < MIN_HEAD_SIZE:
        raise UntestableError(
            "For head size {d}, this check uses at most 2 × {d}² = {n} tokens. They fit in one chunk of {chunk} "
            "tokens, so computing in chunks cannot be tested. Choose an input with a larger head size.",
            d=size,
            n=2 * size**2,
            chunk=CHUNK,
        )
    for n in (size**2 * quarters // 4 for quarters in (1, 2, 4, 8)):
        qkv = inputs.record(n)
        q, k, v = (x[..., :size].contiguous() for x in qkv.tensors)
        exact = _by_matrix(*qkv.tensors)
        for algorithm, attend in ALGORITHMS.items():
            difference = float(metrics.relative_error(attend(*qkv.tensors), exact).max())
            elements = count(partial(attend, q, k, v)).peak_elements / qkv.heads
            yield AlgorithmRow(algorithm=algorithm, n=n, size=size, elements=elements, difference=difference)


def _by_matrix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return registry.get("linear").weights(q, k, causal=True) @ v


def _by_mode(mode: str) -> Callable[..., Tensor]:
    return partial(registry.get("linear", mode=mode).attend, causal=True)


ALGORITHMS = {
    "token by token": _by_mode("recurrent"),
    "in chunks": _by_mode("chunked"),
    CUMSUM: _by_mode("cumsum"),
    MATRIX: _by_matrix,
}


def numbers(rows: Sequence[AlgorithmRow]) -> Numbers:
    """Return the largest difference, and cumsum's memory divided by the matrix's memory at n near d²/2 and at 2d²."""
    sums, matrix = ({row.n: row.elements for row in rows if row.algorithm == name} for name in (CUMSUM, MATRIX))
    ratios, size = {n: sums[n] / matrix[n] for n in matrix}, rows[0].size
    below, above = min(ratios, key=lambda n: abs(n - size**2 / 2)), max(ratios)
    return {
        "difference": max(row.difference for row in rows),
        "below": ratios[below],
        "above": ratios[above],
        "size": size,
        "short": below,
        "long": above,
    }


CLAIM = Claim(
    statement="Causal linear attention gives the same output whether it is computed token by token, in chunks, by "
    "cumulative sums or with the whole attention matrix. For head size d, cumulative sums need less memory than this "
    "matrix only beyond d² tokens.",
    short="four ways to compute linear attention agree",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("causal", {"c_view": "algorithms"}),
    experiment="Causal linear attention with the feature map elu + 1 is computed on this input in four ways: token by "
    "token, in chunks of 64 tokens, by cumulative sum over all tokens, and with the whole matrix of weights. The "
    "outputs are compared. Peak memory, the largest count of numbers stored at one time, is measured at lengths n "
    "below and above d², where d is the head size. If the input is too short for n to exceed d², only some dimensions "
    "of each head are used.",
    rule="Linear attention is computed token by token, in chunks, by cumulative sum, and with the whole matrix of "
    "weights. The claim holds if two conditions are met. (1) The outputs of these four ways differ by at most "
    "{same}, relative to the size of the output. (2) For n tokens and head size d, the cumulative sum needs less "
    "memory than the whole matrix at n = 2d², but not at n = d²/2. The claim partly holds if only the first "
    "condition is met.",
    bounds={"same": 1e-4},
    verdict=Rule(
        requires=Condition("difference", "<=", "same"),
        holds=all_of(Condition("above", "<", 1.0), Condition("below", ">=", 1.0)),
    ),
    finding="Linear attention adds the same products token by token, in chunks, by cumulative sums and with the whole "
    "attention matrix. Only the order of the additions differs. The four outputs differ by at most {difference}, "
    "relative to their size.",
    details="For n tokens and head size d, the cumulative sum stores n matrices of d² numbers, and the whole "
    "attention matrix has n² numbers. Here, d²/2 is {short} tokens and 2d² is {long} tokens.",
    quantities=(
        Quantity(
            "difference",
            "largest relative difference between the outputs of four ways to compute linear attention",
            digits=2,
            bound=True,
        ),
        Quantity(
            "below",
            "linear attention's memory with a cumulative sum ÷ its memory with the whole attention matrix, at n = "
            "d²/2 tokens (d: head size)",
        ),
        Quantity(
            "above",
            "linear attention's memory with a cumulative sum ÷ its memory with the whole attention matrix, at n = "
            "2d² tokens (d: head size)",
        ),
        Quantity("size", "head size d"),
        Quantity("short", "length n = d²/2 for head size d", "tokens"),
        Quantity("long", "length n = 2d² for head size d", "tokens"),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True),
        y=Axis("difference", "relative difference of outputs", log=True),
        by="algorithm",
    ),
    needs=2 * MIN_HEAD_SIZE**2,
    measures_lengths=True,
    theorem="Linear attention adds the same products token by token, in chunks, by cumulative sums and with the whole "
    "matrix, only in different orders. For n tokens and head size d, the cumulative sum stores n d² numbers per head, "
    "and the attention matrix has n² numbers. The cumulative sum therefore needs less memory only for n > d².",
)
