"""Tests of timing rounds: turns are fair and rotate, and a sample is warmed up once and lasts long enough."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from attention_core.benchmarking.rounds import measure_ms, next_subject


@given(st.integers(0, 6), st.integers(0, 5))
def test_each_round_takes_every_subject_once_in_alternating_order(size, rounds):
    taken, turns = dict.fromkeys(range(size), 0), []
    while (turn := next_subject(taken, rounds)) is not None:
        turns.append(turn)
        taken[turn] += 1
    there = list(range(size))
    assert turns == [each for i in range(rounds) for each in (there if i % 2 == 0 else there[::-1])]
    assert Counter(turns) == {each: rounds for each in range(size) if rounds}


class FakeClock:
    """A clock on which calls take two milliseconds."""

    def __init__(self):
        self.repeats = []

    def seconds(self, call, repeats):
        self.repeats.append(repeats)
        return 2e-3


def test_only_the_first_sample_of_a_subject_is_warmed_up():
    clock, calls = FakeClock(), []
    assert measure_ms(clock, lambda: calls.append(1), first_ms=None, min_seconds=9e-3) == 2.0
    assert (clock.repeats, len(calls)) == ([1, 5], 1)
    assert measure_ms(clock, lambda: calls.append(1), first_ms=4.0, min_seconds=9e-3) == 2.0
    assert (clock.repeats, len(calls)) == ([1, 5, 3], 1)
    measure_ms(clock, calls.clear, first_ms=0.0, min_seconds=1e-3)
    assert clock.repeats[-1] == 100  # Calls are shorter than the clock's resolution.
