"""Tests of the area between two curves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_core.metrics.area import mean_gap, share_above

HEIGHTS = st.floats(-1e3, 1e3, allow_nan=False)
CURVES = st.integers(2, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0.01, 10), min_size=n, max_size=n).map(lambda steps: list(np.cumsum(steps))),
        st.lists(HEIGHTS, min_size=n, max_size=n),
        st.lists(HEIGHTS, min_size=n, max_size=n),
    )
)


@pytest.mark.parametrize(
    ("first", "second", "distance", "above"),
    [
        ([1, 1, 1], [1, 1, 1], 0, 0.5),
        ([2, 2, 2], [1, 1, 1], 1, 1),
        ([0, 0, 0], [1, 1, 1], 1, 0),
        ([0, 1, 2], [0, 0, 0], 1, 1),
        ([-1, 1, 1], [0, 0, 0], 0.75, 5 / 6),
        ([1, -1, -1], [0, 0, 0], 0.75, 1 / 6),
        ([-1, 0, 1], [0, 0, 0], 0.5, 0.5),
    ],
)
def test_the_area_between_two_curves(first, second, distance, above):
    assert mean_gap([0, 1, 2], first, second) == pytest.approx(distance)
    assert share_above([0, 1, 2], first, second) == pytest.approx(above)


def test_segments_are_weighted_by_width():
    assert mean_gap([0, 3, 4], [1, 1, 5], [1, 1, 1]) == pytest.approx(0.5)


@given(CURVES)
def test_the_distance_is_at_most_the_largest_gap_and_symmetric(curves):
    x, first, second = curves
    gaps = np.abs(np.subtract(first, second))
    distance = mean_gap(x, first, second)
    assert -1e-9 <= distance <= gaps.max() * (1 + 1e-9)
    assert distance >= abs(np.trapezoid(np.subtract(first, second), x)) / (x[-1] - x[0]) - 1e-6
    assert distance == pytest.approx(mean_gap(x, second, first))


@given(CURVES)
def test_the_shares_above_and_below_add_up(curves):
    x, first, second = curves
    above = share_above(x, first, second)
    assert 0 <= above <= 1
    assert above + share_above(x, second, first) == pytest.approx(1)


@given(CURVES)
def test_the_distance_equals_a_numerical_integral(curves):
    x, first, second = curves
    fine = np.linspace(x[0], x[-1], 20_001)
    gaps = np.abs(np.interp(fine, x, first) - np.interp(fine, x, second))
    assert mean_gap(x, first, second) == pytest.approx(gaps.mean(), rel=0.02, abs=0.02 * (gaps.max() + 1e-9))
