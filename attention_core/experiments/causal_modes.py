"""Three algorithms, one answer: do a variant's causal forms agree on this input, and what does each of them cost?

The forms are the choices of a variant's ``mode``; the explicit n x n matrix stands beside them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attention_core import registry
from attention_core.benchmarking.clock import CpuClock
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.rounds import sample, whose_turn
from attention_core.experiments.task import Load, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source, first_tokens
from attention_core.metrics.error import ratio
from attention_core.ops.linear.causal_scan import CHUNK
from attention_core.variant import Attention, Variant

MATRIX = "matrix"
"""The form that makes the explicit matrix and multiplies it by v."""
WAYS = ("chunked", "recurrent", "cumsum", MATRIX)
"""All forms, in the order in which they are shown."""
SEVERAL = 5 * CHUNK // 2
"""Tokens to which a shorter input is repeated before forms are compared: chunks go on from chunks, the last one cut."""
AGREED = 256
"""Tokens on which forms are compared at most: token by token, a wide state in float64 takes seconds beyond these."""
SEQUENTIAL = 2048
"""Tokens up to which the form that takes them one by one is counted and timed: its line is straight, but slow."""
ROUNDS = 5
"""Samples of each form at each length."""
LEAST = 2e-3
"""Seconds a sample lasts at least, by repeating what is shorter."""
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, kw_only=True)
class AgreementTask:
    """The forms of one variant against each other on an input.

    Attributes:
        source: where q, k and v come from.
        head: the one head compared, None for all.
        word: the variant and its settings.
    """

    source: Source
    head: int | None
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRow:
    """How far two forms ``a`` and ``b`` of a variant, given by its word, lie apart in a number type of ``DTYPES``.

    Attributes:
        difference: the largest of any output number, over the largest output number.
    """

    variant: str
    dtype: str
    a: str
    b: str
    difference: float


@dataclass(frozen=True, kw_only=True)
class CostTask:
    """What one form of a variant does at one length, on one head of Gaussian q, k and v.

    Its multiply-adds are those of matrix products; cumsum makes its ``n C (d_v + 1)`` products ``φ(k) [v, 1]ᵀ`` entry
    by entry, and they are added, so that all forms are counted alike.

    Attributes:
        word: the variant and its settings.
        way: one of ``WAYS``.
        n: tokens.
        d: head size, of keys and of values.
    """

    word: str
    way: str
    n: int
    d: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What a form of a variant, given by its word, costs at one length and head size.

    Attributes:
        multiply_adds: of its products, as ``CostTask`` says.
        peak_bytes: most bytes alive at once beyond q, k and v.
    """

    variant: str
    way: str
    n: int
    d: int
    multiply_adds: int
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class TimeTask:
    """One sample of what a form's call takes.

    Attributes:
        cost: the form and its length.
        round: the sample's number.
        before: milliseconds that the first sample found; None for that one.
    """

    cost: CostTask
    round: int
    before: float | None
    timed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """The milliseconds of one call of a form, one sample in each round; before the first a call only warms up."""

    way: str
    n: int
    round: int
    ms: float


def forms(variant: Variant) -> tuple[str, ...]:
    """The causal algorithms a variant offers; none where it has no choice of them."""
    return next((setting.choices for setting in variant.params.settings() if setting.name == "mode"), ())


def computed(attention: Attention, way: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The causal output in one of the ways, as a function of q, k and v."""
    if way == MATRIX:
        return lambda q, k, v: attention.weights(q, k, causal=True) @ v
    in_mode = attention.with_settings(mode=way)
    return lambda q, k, v: in_mode.attend(q, k, v, causal=True)


def difference(a: Tensor, b: Tensor) -> float:
    """The largest difference of two tensors over the largest entry of the second; 0 between zeros."""
    return float(ratio((a - b).abs().amax(), b.abs().amax()))


def beginning(qkv: QKV, tokens: int) -> QKV:
    """A record's first tokens, or all where there are fewer."""
    return first_tokens(qkv, min(tokens, qkv.n))


def compared(n: int) -> int:
    """The tokens on which forms are compared for an input of n: its first ones, or the input again and again."""
    return min(max(n, SEVERAL), AGREED)


def lengths(d: int) -> tuple[int, ...]:
    """Doublings from 16 to twice d², so that n = d² lies within; 512 at least."""
    return tuple(2**i for i in range(4, math.ceil(math.log2(max(512, 2 * d * d))) + 1))


def tasks(
    source: Source, words: Sequence[str], *, head: int | None, word: str, d: int
) -> tuple[AgreementTask | CostTask, ...]:
    """First how far the forms of each variant agree, then what those of one of them cost, lengths rising.

    Args:
        source: where q, k and v come from.
        words: the variants whose forms are compared.
        head: the one head compared, None for all.
        word: the variant whose costs are counted.
        d: the head size at which they are.
    """
    agreements = [AgreementTask(source=source, head=head, word=each) for each in words]
    costs = [
        CostTask(word=word, way=way, n=n, d=d)
        for n in lengths(d)
        for way in ways(word)
        if way != "recurrent" or n <= SEQUENTIAL
    ]
    return (*agreements, *costs)


def ways(word: str) -> tuple[str, ...]:
    """The forms of a variant and the explicit matrix."""
    offered = forms(registry.from_word(word).variant)
    return tuple(way for way in WAYS if way in offered or way == MATRIX)


def run(
    task: AgreementTask | CostTask | TimeTask, *, load: Load = load
) -> tuple[AgreementRow, ...] | tuple[CostRow] | tuple[TimeRow]:
    """Compare, count, or time.

    Returns:
        Of an agreement, one row per number type and pair of forms; of a cost or a time, one row.

    Raises:
        LabError: if the source cannot be read.
    """
    if isinstance(task, AgreementTask):
        return _agreement(task, load)
    return (_cost(task),) if isinstance(task, CostTask) else (_time(task),)


def _agreement(task: AgreementTask, load: Load) -> tuple[AgreementRow, ...]:
    qkv, attention = beginning(load(task.source, None), AGREED).of_head(task.head), registry.from_word(task.word)
    rows = []
    for name, dtype in DTYPES.items():
        q, k, v = (_repeated(x.to(dtype), compared(qkv.n)) for x in qkv.tensors)
        outs = {way: computed(attention, way)(q, k, v) for way in ways(task.word)}
        for a, b in itertools.combinations(outs, 2):
            apart = difference(outs[a], outs[b])
            rows.append(AgreementRow(variant=task.word, dtype=name, a=a, b=b, difference=apart))
    return tuple(rows)


def _repeated(x: Tensor, n: int) -> Tensor:
    return x.repeat(1, -(-n // x.shape[-2]), 1)[:, :n]


def _cost(task: CostTask) -> CostRow:
    counts = count(_call(task), unit=torch.uint8)
    # What cumsum multiplies entry by entry is as much as it reads in matrix products: every state's every number once.
    adds = counts.multiply_adds * (2 if task.way == "cumsum" else 1)
    return CostRow(
        variant=task.word, way=task.way, n=task.n, d=task.d, multiply_adds=adds, peak_bytes=counts.peak_elements
    )


def _call(task: CostTask) -> Callable[[], Tensor]:
    q, k, v = torch.randn(3, 1, task.n, task.d, generator=torch.Generator().manual_seed(task.n))
    compute = computed(registry.from_word(task.word), task.way)
    return lambda: compute(q, k, v)


def following(tasks: Sequence[CostTask], rows: Sequence[TimeRow]) -> TimeTask | None:
    """The sample that comes after these: every task once per round, each round in the opposite order of the last."""
    taken: dict[tuple[str, int], list[float]] = {(task.way, task.n): [] for task in tasks}
    for row in rows:
        taken[row.way, row.n].append(row.ms)
    task = whose_turn({task: len(taken[task.way, task.n]) for task in tasks}, ROUNDS)
    if task is None:
        return None
    ms = taken[task.way, task.n]
    return TimeTask(cost=task, round=len(ms), before=ms[0] if ms else None)


def _time(task: TimeTask) -> TimeRow:
    ms = sample(CpuClock(), _call(task.cost), before=task.before, least=LEAST)
    return TimeRow(way=task.cost.way, n=task.cost.n, round=task.round, ms=ms)


def crossing(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """From which length on the first costs less than the second, on a straight line between logarithms.

    Args:
        first: ``(n, cost)``, lengths rising; costs are positive.
        second: the same of the other, at the same lengths.

    Returns:
        That length and what both cost there; the shortest length where the first always costs less; None where it
        does not at the longest.
    """
    pairs = [(n, own, other) for (n, own), (m, other) in zip(first, second, strict=False) if n == m]
    if not pairs or pairs[-1][1] >= pairs[-1][2]:
        return None
    dearer = [i for i, (_, own, other) in enumerate(pairs) if own >= other]
    if not dearer:
        return pairs[0][:2]
    (n, a, b), (m, c, d) = pairs[dearer[-1]], pairs[dearer[-1] + 1]
    share = math.log(a / b) / (math.log(a / b) + math.log(d / c))
    return n * (m / n) ** share, a * (c / a) ** share
