"""What does an approximation cost in time? Every point of the error experiment against one clock, in rounds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from attention_core import registry
from attention_core.experiments.error import UNIFORM
from attention_core.experiments.task import Load, Row, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.measure.clock import Call, CpuClock

ROUNDS = 7
"""Measurements of each point: their median shrugs off three disturbances."""
LEAST = 1e-3
"""Seconds a measurement lasts at least, by repeating what is shorter: a clock and a loop take time themselves."""


@dataclass(frozen=True, kw_only=True)
class CostTask:
    """All points of a sweep on one input.

    Attributes:
        source: the input.
        words: the variants with their settings, ``"uniform"`` for the plain mean of the values.
        causal: whether the future is hidden.
    """

    source: Source
    words: tuple[str, ...]
    causal: bool = False


def run(task: CostTask, *, load: Load = load) -> Iterator[Row]:
    """Measure ``attend`` of every point on all heads once per round, each round in the opposite order of the last.

    Yields:
        One row per point and round: ``word``, ``round`` and ``ms``. The first ones come after a call that only warms
        up.
    """
    qkv, clock = load(task.source, None), CpuClock()
    calls = {word: _call(word, qkv, causal=task.causal) for word in task.words}
    repeats: dict[str, int] = {}
    for number in range(ROUNDS):
        for word in task.words if number % 2 == 0 else reversed(task.words):
            call = calls[word]
            if word not in repeats:
                call()
                repeats[word] = math.ceil(LEAST / max(clock.seconds(call, 1), 1e-5))
            yield {"word": word, "round": number, "ms": 1e3 * clock.seconds(call, repeats[word])}


def _call(word: str, qkv: QKV, *, causal: bool) -> Call:
    q, k, v = qkv.q, qkv.k, qkv.v
    if word != UNIFORM:
        attention = registry.from_word(word)
        return lambda: attention.attend(q, k, v, causal=causal)
    if not causal:
        return lambda: v.mean(-2, keepdim=True).expand_as(v)
    seen = torch.arange(1, v.shape[-2] + 1, dtype=v.dtype)[:, None]
    return lambda: v.cumsum(-2) / seen
