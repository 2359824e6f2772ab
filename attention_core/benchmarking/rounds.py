"""Fair turns on one clock: in every round each is measured once, and the next round goes the opposite way.

Whatever slows the machine down for a while then slows all of them down alike.
"""

import math
from collections.abc import Mapping
from typing import TypeVar

from attention_core.benchmarking.clock import Call, Clock

T = TypeVar("T")


def whose_turn(taken: Mapping[T, int], rounds: int) -> T | None:
    """Who is measured next, by how often each was, in the order of the first round; None after the last one."""
    least = min(taken.values(), default=rounds)
    if least >= rounds:
        return None
    waiting = [each for each, count in taken.items() if count == least]
    return waiting[0] if least % 2 == 0 else waiting[-1]


def sample(clock: Clock, call: Call, *, before: float | None, least: float) -> float:
    """Milliseconds of a call, run so often in a row that the clock's grain does not count.

    Args:
        clock: measures it.
        call: what is measured.
        before: milliseconds that an earlier sample found; for None the call is first warmed up and looked at.
        least: seconds that the sample lasts at least.
    """
    if before is None:
        call()
        before = 1e3 * clock.seconds(call, 1)
    return 1e3 * clock.seconds(call, math.ceil(1e3 * least / max(before, 1e-2)))
