import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from attention_core.metrics.fit import fit_bend, fit_growth, fit_power

N = (16, 32, 64, 300, 4096)


@pytest.mark.parametrize("exponent", [-1.5, 0.0, 0.69, 1.0, 2.0])
def test_exact_power_law_is_recovered(exponent):
    fit = fit_power(N, [3.5 * n**exponent for n in N])
    assert (fit.exponent, fit.factor, fit.r2) == pytest.approx((exponent, 3.5, 1.0), abs=1e-9)
    assert fit.at(1000) == pytest.approx(3.5 * 1000**exponent)


@given(st.lists(st.tuples(st.floats(0.5, 1e5), st.floats(1e-6, 1e6)), min_size=2, max_size=8))
def test_the_fit_is_the_least_squares_line_through_the_logarithms(points):
    x, y = zip(*points, strict=True)
    assume(max(x) / min(x) > 1.01)
    fit = fit_power(x, y)
    slope, offset = np.polyfit(np.log(x), np.log(y), 1)
    assert fit.exponent == pytest.approx(slope, abs=1e-6, rel=1e-6)
    assert fit.log_factor == pytest.approx(offset, abs=1e-4, rel=1e-6)
    assert -1e-9 <= fit.r2 <= 1 + 1e-9


def test_r2_is_the_share_of_variance_explained():
    y = [1.0, 5.0, 3.0, 20.0, 11.0]
    fit = fit_power(N, y)
    assert fit.r2 == pytest.approx(np.corrcoef(np.log(N), np.log(y))[0, 1] ** 2)
    assert 0 < fit.r2 < 1


def test_the_exponent_does_not_depend_on_the_units_of_the_axes():
    y = [1.0, 5.0, 3.0, 20.0, 11.0]
    assert fit_power([60 * n for n in N], [1e3 * v for v in y]).exponent == pytest.approx(fit_power(N, y).exponent)


def test_values_beyond_the_range_of_floats_are_infinite():
    assert fit_power((1, 2), (1e-300, 1e300)).at(1e9) == math.inf
    steep = fit_power((55_000, 55_100), (2.0, 1.0))
    assert steep.factor == math.inf
    assert steep.at(55_100) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((1,), (2,)),
        ((), ()),
        ((4, 4), (1, 2)),
        ((0, 1), (1, 1)),
        ((1, 2), (1, -1)),
        ((1, 2), (1, math.nan)),
        ((1, 2), (math.inf, 1)),
    ],
)
def test_invalid_points_raise(x, y):
    with pytest.raises(ValueError, match="power law"):
        fit_power(x, y)


def test_growth_needs_three_positions_and_a_factor_of_four():
    assert fit_growth([1, 2, 4], [1, 4, 16]).exponent == pytest.approx(2)
    assert fit_growth([1, 2, 3.9], [1, 4, 16]) is None
    assert fit_growth([1, 8], [1, 4]) is None


@pytest.mark.parametrize(("late", "bends"), [(1.0, False), (1.1, False), (1.4, True), (0.5, True)])
def test_bend_is_found_if_the_last_exponent_differs(late, bends):
    x = [2.0**i for i in range(9)]
    y = [2 ** (min(i, 4) + max(0, i - 4) * late) for i in range(9)]
    tail = fit_bend(x, y)
    assert (tail is not None) == bends
    assert not bends or tail.exponent == pytest.approx(fit_power(x[-4:], y[-4:]).exponent)
    assert fit_bend(x[4:8], y[4:8]) is None, "the whole curve is its own end"
