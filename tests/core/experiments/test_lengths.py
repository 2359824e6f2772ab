from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from attention_core import limits
from attention_core.experiments.lengths import measured_lengths


@given(st.integers(1, 8192))
def test_measured_lengths_increase_evenly_up_to_the_longest(longest):
    rungs = measured_lengths(longest)
    assert rungs[-1] == longest
    assert list(rungs) == sorted(set(rungs))
    assert all(b / a < 3 for a, b in pairwise(rungs))
    assert len(rungs) <= 11
    if longest >= 10:
        assert len(rungs) >= 4
    if longest >= 64:
        assert rungs[0] == 16


def test_measured_lengths_double_over_a_long_range():
    assert measured_lengths(4096) == (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    assert measured_lengths(64) == (16, 23, 32, 45, 64)


def test_both_profiles_allow_at_least_4096_tokens():
    assert min(limits.OWN_MACHINE.sweep_tokens, limits.HOSTED.sweep_tokens) >= 4096
