"""Which lengths are worth measuring."""

SHORTEST = 16
"""Tokens a sweep over length begins with, where there are enough."""
MANY = 512
"""Longest length from which on lengths double; below, there are two of them per doubling."""


def ladder(longest: int) -> tuple[int, ...]:
    """Lengths to measure, ascending: doubling from 16 to the longest, in finer steps where that is short."""
    step = 2.0 if longest >= MANY else 2.0**0.5
    rung: float = min(SHORTEST, max(4, longest // 4))
    rungs = []
    while rung < longest / step**0.5:
        rungs.append(round(rung))
        rung *= step
    return (*rungs, longest)
