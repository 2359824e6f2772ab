"""The measured time of each point of the error experiment (``experiments/error.py``).

A point is a variant with its settings, or uniform attention. A variant has one point per value of its budget, the
setting that trades cost for accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from attention_core import registry
from attention_core.benchmarking.clock import Call, CpuClock
from attention_core.benchmarking.rounds import measure_ms, next_subject
from attention_core.experiments.error import UNIFORM
from attention_core.experiments.task import Load, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source

ROUNDS = 7
"""Measurements per point; their median is robust to three outliers."""
MIN_SECONDS = 1e-3
"""Minimum seconds per measurement; a shorter call is repeated, because the clock and the loop also take time."""


@dataclass(frozen=True, kw_only=True)
class ErrorCostSpec:
    """The variants to time on one input; each variant with its settings is one point.

    Attributes:
        words: the variants with their settings; ``"uniform"`` for the plain mean of the values.
    """

    source: Source
    words: tuple[str, ...]
    causal: bool = False


@dataclass(frozen=True, kw_only=True)
class ErrorCostTask:
    """A task that times one variant with its settings (one point) once.

    Attributes:
        word: the variant with its settings, or ``"uniform"``.
        round: the sample's number.
        first_ms: milliseconds of this variant's first sample; None if this is the first sample.
    """

    source: Source
    word: str
    causal: bool
    round: int
    first_ms: float | None
    timed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCostRow:
    """One timed sample of one variant with its settings.

    Attributes:
        word: the variant with its settings, or ``"uniform"``.
        round: the sample's number.
        ms: milliseconds of one call, all heads.
    """

    word: str
    round: int
    ms: float


def next_sample(spec: ErrorCostSpec, rows: Sequence[ErrorCostRow]) -> ErrorCostTask | None:
    """Return the next sample after these rows; None after the last one.

    Each round samples every point once, in the reverse order of the round before.
    """
    samples = {word: [row.ms for row in rows if row.word == word] for word in spec.words}
    word = next_subject({word: len(ms) for word, ms in samples.items()}, ROUNDS)
    if word is None:
        return None
    first_ms = samples[word][0] if samples[word] else None
    return ErrorCostTask(source=spec.source, word=word, causal=spec.causal, round=len(samples[word]), first_ms=first_ms)


def run(task: ErrorCostTask, *, load: Load = load) -> tuple[ErrorCostRow]:
    """Measure ``attend`` of one point on all heads; a warm-up call precedes the point's first sample."""
    call = _call(task.word, load(task.source, None), causal=task.causal)
    ms = measure_ms(CpuClock(), call, first_ms=task.first_ms, min_seconds=MIN_SECONDS)
    return (ErrorCostRow(word=task.word, round=task.round, ms=ms),)


def _call(word: str, qkv: QKV, *, causal: bool) -> Call:
    q, k, v = qkv.tensors
    if word != UNIFORM:
        attention = registry.from_word(word)
        return lambda: attention.attend(q, k, v, causal=causal)
    if not causal:
        return lambda: v.mean(-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1])
    counts = torch.arange(1, v.shape[-2] + 1, dtype=v.dtype)[:, None]
    return lambda: v.cumsum(-2) / counts
