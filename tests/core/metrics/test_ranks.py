"""Tests of rank correlations against their definitions, and of the element that differs most."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_core.metrics import farthest_off, kendall, rank_correlation, same_order
from attention_core.metrics.ranks import ranks

VALUES = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=12)


def test_equal_values_share_their_mean_rank():
    assert ranks([3.0, 1.0, 3.0, 2.0]).tolist() == [3.5, 1.0, 3.5, 2.0]


@given(VALUES)
def test_kendall_equals_the_count_of_pairs(pairs):
    x, y = zip(*pairs, strict=True)
    sign = [
        (math.copysign(1, a[0] - b[0]) * (a[0] != b[0]), math.copysign(1, a[1] - b[1]) * (a[1] != b[1]))
        for a, b in itertools.combinations(pairs, 2)
    ]
    text = sum(p != 0 for p, _ in sign), sum(q != 0 for _, q in sign)
    if not all(text):
        assert math.isnan(kendall(x, y))
    else:
        true = sum(p * q for p, q in sign) / math.sqrt(text[0] * text[1])
        assert kendall(x, y) == pytest.approx(true)


@given(VALUES)
def test_rank_correlation_depends_only_on_the_order(pairs):
    x, y = zip(*pairs, strict=True)
    found = rank_correlation(x, y)
    if math.isnan(found):
        assert len(set(x)) == 1 or len(set(y)) == 1
        return
    assert -1 - 1e-9 <= found <= 1 + 1e-9
    assert rank_correlation([math.exp(v) for v in x], y) == pytest.approx(found)
    assert rank_correlation([-v for v in x], y) == pytest.approx(-found)


def test_correlation_of_equal_and_reversed_orders():
    assert rank_correlation([1, 2, 5, 9], [1, 10, 11, 1e9]) == pytest.approx(1)
    assert kendall([1, 2, 5, 9], [4, 3, 2, 1]) == pytest.approx(-1)
    # Without ties, ρ is 1 - 6 Σ (squared rank differences) / (m (m² - 1)).
    assert rank_correlation([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(1 - 6 * 4 / 60)


@pytest.mark.parametrize("correlation", [rank_correlation, kendall])
def test_correlations_with_nan_are_nan(correlation):
    assert math.isnan(correlation([1, math.nan, 3], [1, 2, 3]))
    assert math.isnan(correlation([1, 2, 3], [1, 2, math.nan]))
    assert correlation([1, 2, math.inf], [1, 2, 3]) == pytest.approx(1)


def test_farthest_off_has_the_largest_rank_difference():
    assert farthest_off([1, 2, 3, 4], [2, 3, 4, 1]) == 3


@given(VALUES, st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_same_order_counts_the_pairs_from_different_groups(pairs, groups):
    x, y = zip(*pairs, strict=True)
    same = text = 0
    for i, j in itertools.combinations(range(len(pairs)), 2):
        product = (x[i] - x[j]) * (y[i] - y[j])
        if groups[i] != groups[j] and product:
            text, same = text + 1, same + (product > 0)
    assert same_order(x, y, groups[: len(pairs)]) == (same, text)
