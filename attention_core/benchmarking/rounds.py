"""The order of timed calls: each round times every subject (a call to compare) once, the next round in reverse order.

A temporary slowdown of the machine then affects all subjects equally.
"""

import math
from collections.abc import Mapping
from typing import TypeVar

from attention_core.benchmarking.clock import Call, Clock

T = TypeVar("T")


def next_subject(taken: Mapping[T, int], rounds: int) -> T | None:
    """Return the subject to measure next, given how often each was measured; None after the last round."""
    least = min(taken.values(), default=rounds)
    if least >= rounds:
        return None
    waiting = [each for each, count in taken.items() if count == least]
    return waiting[0] if least % 2 == 0 else waiting[-1]


def sample(clock: Clock, call: Call, *, before: float | None, least: float) -> float:
    """Measure the milliseconds of a call, repeated until the resolution of the clock does not matter.

    Args:
        clock: clock of the device.
        call: the call to measure.
        before: milliseconds of an earlier sample; if None, the call is first warmed up and measured once.
        least: minimum duration of the sample in seconds.
    """
    if before is None:
        call()
        before = 1e3 * clock.seconds(call, 1)
    return 1e3 * clock.seconds(call, math.ceil(1e3 * least / max(before, 1e-2)))
