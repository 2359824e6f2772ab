"""Compares the algorithms that compute a variant's causal output: their results on an input, and their costs.

The algorithms are the choices of the variant's setting ``mode``, and the product with the explicit n x n matrix.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import registry
from attention_core.attention import Attention
from attention_core.benchmarking.counting import count
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source, first_tokens_at_most
from attention_core.metrics.approximation import safe_ratio
from attention_core.ops.linear.causal_scan import CHUNK
from attention_core.variant import Variant

MATRIX = "matrix"
"""The algorithm that computes the explicit matrix and multiplies it by v."""
ALGORITHMS = ("chunked", "recurrent", "cumsum", MATRIX)
"""All algorithms, in display order."""
MIN_COMPARED_TOKENS = 5 * CHUNK // 2
"""Length to which shorter inputs are repeated before the comparison: several chunks, the last one incomplete."""
MAX_COMPARED_TOKENS = 256
"""Maximum tokens that are compared. Beyond it, the recurrent algorithm takes seconds for a wide float64 state."""
MAX_RECURRENT_TOKENS = 2048
"""Maximum tokens at which the recurrent algorithm is counted. Its cost is linear, but it is slow."""
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, kw_only=True)
class AgreementTask:
    """A task that compares the outputs of all algorithms of one variant on an input."""

    source: Source
    head: int | None
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRow:
    """The difference between the outputs of algorithms ``a`` and ``b`` of a variant, at one dtype of ``DTYPES``.

    Attributes:
        difference: largest difference of any output entry, divided by the largest output entry.
    """

    variant: str
    dtype: str
    a: str
    b: str
    difference: float


@dataclass(frozen=True, kw_only=True)
class CostTask:
    """A task that counts the cost of one algorithm at one length, on one head of Gaussian q, k and v.

    The counter finds only matrix products. ``cumsum`` computes its products ``φ(k) [v, 1]ᵀ`` elementwise:
    ``n C (d_v + 1)`` multiply-adds for C features. They are added, so that all algorithms are comparable.

    Attributes:
        algorithm: one of ``ALGORITHMS``.
    """

    word: str
    algorithm: str
    n: int
    d: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """The cost of one algorithm of a variant (given by its word) at one length and head size.

    Attributes:
        multiply_adds: multiply-adds of the products that ``CostTask`` describes.
        peak_bytes: peak bytes allocated beyond q, k and v.
    """

    variant: str
    algorithm: str
    n: int
    d: int
    multiply_adds: int
    peak_bytes: int


def modes(variant: Variant) -> tuple[str, ...]:
    """Return the names of the causal algorithms that a variant offers; empty if it offers no choice."""
    return next((setting.choices for setting in variant.params.settings() if setting.name == "mode"), ())


def causal_forward(attention: Attention, algorithm: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return a function of q, k and v that computes the causal output by one algorithm."""
    if algorithm == MATRIX:
        return lambda q, k, v: attention.weights(q, k, causal=True) @ v
    attention_in_mode = attention.with_settings(mode=algorithm)
    return lambda q, k, v: attention_in_mode.attend(q, k, v, causal=True)


def difference(a: Tensor, b: Tensor) -> float:
    """Return the largest difference of two tensors divided by the largest entry of the second; 0 if both are zero."""
    return float(safe_ratio((a - b).abs().amax(), b.abs().amax()))


def compared_length(n: int) -> int:
    """Return the number of tokens on which algorithms are compared; short inputs are repeated, long ones cut."""
    return min(max(n, MIN_COMPARED_TOKENS), MAX_COMPARED_TOKENS)


def lengths(d: int) -> tuple[int, ...]:
    """Return powers of two from 16 to at least 512 and at least 2d², so that a chart can show n = d²."""
    return tuple(2**i for i in range(4, math.ceil(math.log2(max(512, 2 * d * d))) + 1))


def tasks(
    source: Source, words: Sequence[str], *, head: int | None, word: str, d: int
) -> tuple[AgreementTask | CostTask, ...]:
    """Return tasks that compare the algorithms of each variant, then tasks for the cost of one variant.

    Args:
        source: source of q, k and v.
        words: the variants whose algorithms are compared.
        head: index of the only head to compare; None for all heads.
        word: the variant whose costs are counted.
        d: the head size for the costs.
    """
    agreements = [AgreementTask(source=source, head=head, word=compared) for compared in words]
    costs = [
        CostTask(word=word, algorithm=algorithm, n=n, d=d)
        for n in lengths(d)
        for algorithm in algorithms(word)
        if algorithm != "recurrent" or n <= MAX_RECURRENT_TOKENS
    ]
    return (*agreements, *costs)


def algorithms(word: str) -> tuple[str, ...]:
    """Return the names of a variant's algorithms in display order, including ``MATRIX``."""
    offered = modes(registry.from_word(word).variant)
    return tuple(algorithm for algorithm in ALGORITHMS if algorithm in offered or algorithm == MATRIX)


def run(task: AgreementTask | CostTask, *, load: Load = load) -> tuple[AgreementRow, ...] | tuple[CostRow]:
    """Compare the algorithms on an input, or count the cost of one algorithm.

    Returns:
        For an agreement task, one row per dtype and pair of algorithms; for a cost task, one row.
    """
    return _agreement(task, load) if isinstance(task, AgreementTask) else (_cost(task),)


def _agreement(task: AgreementTask, load: Load) -> tuple[AgreementRow, ...]:
    qkv, attention = (
        first_tokens_at_most(load(task.source, None), MAX_COMPARED_TOKENS).of_head(task.head),
        registry.from_word(task.word),
    )
    rows = []
    for name, dtype in DTYPES.items():
        q, k, v = (_repeated(x.to(dtype), compared_length(qkv.n)) for x in qkv.tensors)
        outputs = {algorithm: causal_forward(attention, algorithm)(q, k, v) for algorithm in algorithms(task.word)}
        for a, b in itertools.combinations(outputs, 2):
            largest = difference(outputs[a], outputs[b])
            rows.append(AgreementRow(variant=task.word, dtype=name, a=a, b=b, difference=largest))
    return tuple(rows)


def _repeated(x: Tensor, n: int) -> Tensor:
    return x.repeat(1, -(-n // x.shape[-2]), 1)[:, :n]


def _cost(task: CostTask) -> CostRow:
    counts = count(_call(task), unit=torch.uint8)
    # The counter does not count elementwise products. The algorithm "cumsum" needs one for each entry of each state, as
    # many as its counted multiply-adds, so its count is doubled.
    products = counts.multiply_adds * (2 if task.algorithm == "cumsum" else 1)
    return CostRow(
        variant=task.word,
        algorithm=task.algorithm,
        n=task.n,
        d=task.d,
        multiply_adds=products,
        peak_bytes=counts.peak_elements,
    )


def _call(task: CostTask) -> Callable[[], Tensor]:
    q, k, v = torch.randn(3, 1, task.n, task.d, generator=torch.Generator().manual_seed(task.n))
    compute = causal_forward(registry.from_word(task.word), task.algorithm)
    return lambda: compute(q, k, v)


def crossing(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the length from which the first algorithm costs less than the second, interpolated in logarithms.

    Args:
        first: ``(n, cost)`` of the first algorithm, by ascending n; costs are positive.
        second: the same for the second algorithm.

    Returns:
        The length, and the cost of both algorithms at it. If the first algorithm always costs less: the shortest
        length and the first cost. None if the first algorithm does not cost less at the longest length.
    """
    costs = [(n, a, b) for (n, a), (m, b) in zip(first, second, strict=False) if n == m]
    if not costs or costs[-1][1] >= costs[-1][2]:
        return None
    not_cheaper = [i for i, (_, a, b) in enumerate(costs) if a >= b]
    if not not_cheaper:
        return costs[0][:2]
    (n, a, b), (m, c, d) = costs[not_cheaper[-1]], costs[not_cheaper[-1] + 1]
    share = math.log(a / b) / (math.log(a / b) + math.log(d / c))
    return n * (m / n) ** share, a * (c / a) ** share
