"""Sequence lengths at which experiments measure: each is about twice (for short inputs, √2 times) the previous one."""

SHORTEST = 16
"""Shortest length in tokens, if the input has enough."""
DOUBLING_FROM = 512
"""From this longest length on, lengths double; for shorter inputs, there are two lengths per doubling."""


def measured_lengths(longest: int) -> tuple[int, ...]:
    """Return lengths to measure, doubling from 16 to the longest; short inputs start below 16 and have finer steps."""
    step = 2.0 if longest >= DOUBLING_FROM else 2.0**0.5
    length: float = min(SHORTEST, max(4, longest // 4))
    lengths = []
    while length < longest / step**0.5:
        lengths.append(round(length))
        length *= step
    return (*lengths, longest)
