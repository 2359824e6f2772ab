"""What does an approximation cost in time? Every point of the error experiment against one clock, in rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from attention_core import registry
from attention_core.benchmarking.clock import Call, CpuClock
from attention_core.benchmarking.rounds import sample, whose_turn
from attention_core.experiments.error import UNIFORM
from attention_core.experiments.task import Load, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source

ROUNDS = 7
"""Measurements of each point: their median shrugs off three disturbances."""
LEAST = 1e-3
"""Seconds a measurement lasts at least, by repeating what is shorter: a clock and a loop take time themselves."""


@dataclass(frozen=True, kw_only=True)
class ErrorCostSpec:
    """All points of a sweep on one input.

    Attributes:
        source: the input.
        words: the variants with their settings, ``"uniform"`` for the plain mean of the values.
        causal: whether the future is hidden.
    """

    source: Source
    words: tuple[str, ...]
    causal: bool = False


@dataclass(frozen=True, kw_only=True)
class ErrorCostTask:
    """One sample of one point.

    Attributes:
        source: the input.
        word: the variant with its settings, or ``"uniform"``.
        causal: whether the future is hidden.
        round: the sample's number.
        before: milliseconds that the point's first sample found; None for that one.
    """

    source: Source
    word: str
    causal: bool
    round: int
    before: float | None
    timed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCostRow:
    """One sample of one point.

    Attributes:
        word: the variant with its settings, or ``"uniform"``.
        round: the sample's number.
        ms: milliseconds of one call, all heads.
    """

    word: str
    round: int
    ms: float


def following(spec: ErrorCostSpec, rows: Sequence[ErrorCostRow]) -> ErrorCostTask | None:
    """The sample that comes after these: every point once per round, each round in the opposite order of the last."""
    taken = {word: [row.ms for row in rows if row.word == word] for word in spec.words}
    word = whose_turn({word: len(ms) for word, ms in taken.items()}, ROUNDS)
    if word is None:
        return None
    before = taken[word][0] if taken[word] else None
    return ErrorCostTask(source=spec.source, word=word, causal=spec.causal, round=len(taken[word]), before=before)


def run(task: ErrorCostTask, *, load: Load = load) -> tuple[ErrorCostRow]:
    """Measure ``attend`` of one point on all heads; its first sample comes after a call that only warms up.

    Raises:
        LabError: if the source cannot be read, or the variant cannot be causal and the task is.
    """
    call = _call(task.word, load(task.source, None), causal=task.causal)
    ms = sample(CpuClock(), call, before=task.before, least=LEAST)
    return (ErrorCostRow(word=task.word, round=task.round, ms=ms),)


def _call(word: str, qkv: QKV, *, causal: bool) -> Call:
    q, k, v = qkv.tensors
    if word != UNIFORM:
        attention = registry.from_word(word)
        return lambda: attention.attend(q, k, v, causal=causal)
    if not causal:
        return lambda: v.mean(-2, keepdim=True).expand_as(v)
    seen = torch.arange(1, v.shape[-2] + 1, dtype=v.dtype)[:, None]
    return lambda: v.cumsum(-2) / seen
