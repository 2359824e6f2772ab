"""Tests of points: quantiles over heads and seeds, the Pareto front against brute force, the best within a budget."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attention_core.experiments.error import MEASURES, ErrorRow, best_within_cost, pareto_front, points

OFFERS = st.lists(
    st.tuples(st.integers(0, 6).map(float), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, math.inf, math.nan])),
    max_size=12,
)


def row(error, *, word="local", head=0, n=8, cost=10, value=4, floor=None, floor_kind=None):
    return ErrorRow(
        variant=word.split("~")[0],
        setting="window",
        value=value,
        word=word,
        reference="softmax",
        head=head,
        seed=None,
        n=n,
        causal=False,
        multiply_adds=cost,
        **dict.fromkeys(MEASURES, math.nan) | {"matrix": error},
        size=1.0,
        negative_mass=0.0,
        floor=floor,
        floor_kind=floor_kind,
        rank=None,
        keys=None,
    )


def is_dominated(offer, offers):
    return any(o[0] <= offer[0] and o[1] <= offer[1] and (o[0] < offer[0] or o[1] < offer[1]) for o in offers)


@given(OFFERS)
def test_the_pareto_front_equals_a_brute_force_search(offers):
    finite = [o for o in offers if all(map(math.isfinite, o))]
    expected = [i for i, o in enumerate(offers) if o in finite and not is_dominated(o, finite)]
    front = pareto_front(offers)
    assert sorted(front) == expected
    assert [offers[i][0] for i in front] == sorted(offers[i][0] for i in front)


def test_heads_and_seeds_are_summarized_by_a_median_and_quartiles():
    [point] = points([row(e / 10, head=e) for e in (3, 1, 9, 5, 7, 2, 8, 4, 10, 6)], "matrix")
    assert (point.low, point.middle, point.high) == (0.3, 0.5, 0.8)
    assert (point.word, point.value, point.multiply_adds) == ("local", 4, 10)


@given(st.lists(st.floats(0, allow_infinity=True), min_size=1, max_size=60), st.booleans())
def test_quantiles_equal_those_of_numpy(errors, broken):
    errors = [*errors, math.nan] if broken else errors
    [point] = points([row(e, floor=e) for e in errors], "matrix")
    low, middle, high = np.quantile(errors, (0.25, 0.5, 0.75), method="inverted_cdf")
    np.testing.assert_equal((point.low, point.middle, point.high, point.floor), (low, middle, high, middle))


def test_one_infinite_error_does_not_change_the_median():
    [point] = points([row(e) for e in (0.2, math.inf, 0.4)], "matrix")
    assert (point.middle, point.high) == (0.4, math.inf)


def test_rows_of_different_lengths_and_words_are_separate_points():
    found = points([row(1), row(2, n=16), row(3, word="local~window~2"), row(4, word="uniform")], "matrix")
    assert [p.middle for p in found] == [1, 2, 3, 4]


def test_the_floor_of_a_point_is_the_median_floor_or_missing():
    floors = [row(1, floor=f, floor_kind=k) for f, k in ((0.3, "keys"), (0.1, "rank"), (0.2, "keys"))]
    [point] = points(floors, "matrix")
    assert (point.floor, point.floor_kind) == (0.2, "keys")
    assert points([row(1)], "matrix")[0].floor is None
    assert points([row(1, floor=0.1, floor_kind="keys"), row(1)], "matrix")[0].floor is None


def test_the_best_point_within_a_budget_has_the_lowest_error():
    found = points(
        [
            row(0.1, word="a", cost=9),
            row(0.5, word="b", cost=5),
            row(0.5, word="c", cost=4),
            row(math.nan, word="d", cost=1),
        ],
        "matrix",
    )
    assert best_within_cost(found, 9).word == "a"
    assert best_within_cost(found, 8).word == "c"
    assert best_within_cost(found, 3) is None


def test_a_fractional_budget_is_a_share_of_all_tokens():
    whole, share, none = points([row(1, value=v, word=f"w~{v}") for v in (4, 0.5, None)], "matrix")
    assert (whole.budget, share.budget, none.budget) == (4, 4, 0)
    assert points([row(1, value=0.5, n=16)], "matrix")[0].budget == 8
