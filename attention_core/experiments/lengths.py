"""The sequence lengths at which experiments measure."""

SHORTEST = 16
"""Shortest length in tokens, if the input has enough."""
MANY = 512
"""From this longest length on, lengths double; for shorter inputs, there are two lengths per doubling."""


def ladder(longest: int) -> tuple[int, ...]:
    """Return lengths to measure, ascending: doubling from 16 to the longest, in finer steps for short inputs."""
    step = 2.0 if longest >= MANY else 2.0**0.5
    rung: float = min(SHORTEST, max(4, longest // 4))
    rungs = []
    while rung < longest / step**0.5:
        rungs.append(round(rung))
        rung *= step
    return (*rungs, longest)
