"""The order in which calls are timed, and the measurement of the time of one call.

Each round times every subject (a call to compare) once, and the next round does so in reverse order. A temporary
slowdown of the machine then affects all subjects equally.
"""

import math
from collections.abc import Mapping
from typing import TypeVar

from attention_core.benchmarking.clock import Call, Clock

T = TypeVar("T")


def next_subject(counts: Mapping[T, int], rounds: int) -> T | None:
    """Return the subject to measure next, given how often each was measured; None after ``rounds`` rounds."""
    fewest = min(counts.values(), default=rounds)
    if fewest >= rounds:
        return None
    remaining = [subject for subject, count in counts.items() if count == fewest]
    return remaining[0] if fewest % 2 == 0 else remaining[-1]


def measure_ms(clock: Clock, call: Call, *, first_ms: float | None, min_seconds: float) -> float:
    """Measure the milliseconds of a call, repeated until the resolution of the clock does not matter.

    Args:
        clock: clock of the device.
        call: the call to measure.
        first_ms: milliseconds of an earlier sample; if None, the call is first warmed up and measured once.
        min_seconds: minimum duration of the sample in seconds.
    """
    if first_ms is None:
        call()
        first_ms = 1e3 * clock.seconds(call, 1)
    return 1e3 * clock.seconds(call, math.ceil(1e3 * min_seconds / max(first_ms, 1e-2)))
