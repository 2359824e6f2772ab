import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attention_core import metrics
from attention_core.metrics import Passport, Ranks, passport
from attention_core.metrics.passport import rows_are_distributions
from attention_core.ops.softmax.masked import causal_mask, masked_softmax, scores


def softmax(*shape, seed=0):
    return (2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))).softmax(-1)


def test_matrix_compared_with_itself():
    matrix = softmax(2, 12, 12)
    found = passport(matrix, matrix, causal=False)
    assert (found.row_sum_min, found.row_sum_max) == pytest.approx((1, 1), abs=1e-6)
    assert (found.relative_error, found.total_variation, found.kl, found.negative_mass) == (0, 0, 0, 0)
    assert (found.density, found.top_k_overlap, Ranks.of(matrix).rank) == (1, 1, 12)


def test_identity_compared_with_uniform_attention():
    n = 20
    found = passport(torch.eye(n), torch.full((n, n), 1 / n), causal=False)
    expected = {
        "row_sum_min": 1,
        "row_sum_max": 1,
        "negative_mass": 0,
        "density": 1 / n,
        "entropy": 0,
        "sparsity": n**-0.5,
        "relative_error": math.sqrt(n - 1),
        "total_variation": 1 - 1 / n,
        "kl": math.log(n),
        "top_k_overlap": 1 / n,
    }
    ranks = Ranks.of(torch.eye(n))
    assert dataclasses.asdict(ranks) == pytest.approx({"rank": n, "effective_rank": n})
    assert dataclasses.asdict(found) == pytest.approx(expected, rel=1e-6)
    assert found.perplexity == 1
    assert all(type(value) is float for value in (*dataclasses.astuple(found), *dataclasses.astuple(ranks)))


def test_heads_are_averaged_and_row_sums_give_a_range():
    pair = torch.stack([torch.eye(4), torch.full((4, 4), 0.5)])
    found, ranks = passport(pair, pair, causal=False), Ranks.of(pair)
    assert (found.row_sum_min, found.row_sum_max) == (1, 2)
    assert ranks.rank == 2.5
    assert ranks.effective_rank == pytest.approx(2.5)
    assert found.density == 1 / 8 + 1 / 2
    assert found.entropy == pytest.approx(math.log(4) / 2)
    assert found.perplexity == pytest.approx(2)


def test_rank_uses_the_precision_of_the_matrix():
    left, right = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0))
    assert Ranks.of(left @ right.mT).rank == 5


def test_causal_density_counts_the_past_only():
    q, k = torch.randn(2, 3, 10, 4, generator=torch.Generator().manual_seed(1))
    matrix = masked_softmax(scores(q, k), causal_mask(10))
    assert passport(matrix, matrix, causal=True).density == 1
    assert passport(matrix, matrix, causal=False).density == pytest.approx(0.55)
    assert passport(matrix, matrix, causal=False, mask=torch.ones(10, 10).tril().bool()).density == 1


@pytest.mark.parametrize("n", [1, 2, 9, 11])
def test_overlap_compares_ten_keys_or_all(n):
    found = passport(softmax(1, n, n), softmax(1, n, n, seed=1), causal=False)
    assert (found.top_k_overlap == 1) == (n <= 10)


def test_signed_and_zero_rows_are_measured():
    matrix = torch.tensor([[1.5, -0.5], [0.0, 0.0]])
    found = passport(matrix, softmax(2, 2), causal=False)
    assert (found.row_sum_min, found.row_sum_max, found.negative_mass) == (0, 1, 0.25)
    assert found.kl == math.inf
    assert math.isfinite(found.entropy)


def test_a_nan_matrix_gives_nan_and_no_exception():
    broken = torch.full((3, 3), math.nan)
    found = passport(broken, softmax(3, 3), causal=False)
    assert all(math.isnan(number) for number in dataclasses.astuple(Ranks.of(broken)))
    for field in dataclasses.fields(Passport):
        if field.name not in ("density", "top_k_overlap"):
            assert math.isnan(getattr(found, field.name))
    assert found.top_k_overlap == 0


square = st.integers(1, 7).flatmap(
    lambda n: arrays(np.float32, (2, n, n), elements=st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.0]))
)


@settings(max_examples=60, deadline=None)
@given(square)
def test_the_measures_equal_plain_sums(a):
    weights, n = torch.from_numpy(a), a.shape[-1]
    for head in range(2):
        rows = a[head].tolist()
        cells = [(i, j, rows[i][j]) for i in range(n) for j in range(n)]
        mass = sum(abs(x) for *_, x in cells)
        assert metrics.row_sums(weights)[head].tolist() == pytest.approx([sum(row) for row in rows])
        negative = -sum(x for *_, x in cells if x < 0) / mass if mass else 0
        assert float(metrics.negative_mass(weights)[head]) == pytest.approx(negative)
        far = sum(abs(x) * abs(i - j) for i, j, x in cells) / mass if mass else 0
        assert float(metrics.mean_distance(weights)[head]) == pytest.approx(far)
        assert float(metrics.density(weights)[head]) == pytest.approx(sum(x != 0 for *_, x in cells) / n**2)
        past = [x != 0 for i, j, x in cells if j <= i]
        assert float(metrics.density(weights, causal=True)[head]) == pytest.approx(sum(past) / len(past))


def test_density_counts_allowed_pairs_only():
    band = torch.eye(4) + torch.diag(torch.ones(3), -1)
    mask = torch.eye(4, dtype=torch.bool) | torch.ones(4, 4, dtype=torch.bool).triu()
    assert float(metrics.density(band)) == 7 / 16
    assert float(metrics.density(band, causal=True)) == 7 / 10
    assert float(metrics.density(band, mask=mask)) == 4 / 10
    assert float(metrics.density(band, mask=mask, causal=True)) == 1
    assert float(metrics.density(band, mask=torch.zeros(4, 4, dtype=torch.bool))) == 0
    assert metrics.density(torch.stack([band, 0 * band]), mask=mask).tolist() == [0.4, 0]


def test_negative_mass_ranges_from_zero_to_one():
    assert metrics.negative_mass(torch.tensor([[[1.0, -3.0]], [[0.0, 0.0]], [[-1.0, -1.0]]])).tolist() == [0.75, 0, 1]


def test_mean_distance_is_measured_in_tokens():
    assert float(metrics.mean_distance(torch.eye(9))) == 0
    assert float(metrics.mean_distance(torch.roll(torch.eye(9), 1, -1))) == pytest.approx((8 * 1 + 8) / 9)
    n = 31
    assert float(metrics.mean_distance(torch.full((n, n), 1 / n))) == pytest.approx((n * n - 1) / (3 * n))


def test_small_weights_are_summed_exactly():
    row = torch.tensor([[1.0] + [1e-8] * 999])
    assert float(metrics.row_sums(row)) == pytest.approx(1 + 999e-8, rel=1e-12)
    assert float(row.sum(-1)) != pytest.approx(1 + 999e-8, rel=1e-9)


@pytest.mark.parametrize("name", ["negative_mass", "mean_distance"])
def test_nan_is_never_hidden(name):
    assert math.isnan(getattr(metrics, name)(torch.tensor([[1.0, math.nan]] * 2)))


def test_every_number_has_a_column_or_ends_a_range():
    columns = Passport.columns()
    ends = {column.range_end for column in columns.values()} - {""}
    assert set(columns) | ends == {each.name for each in dataclasses.fields(Passport)}
    assert not set(columns) & ends
    labels = [column.label for column in columns.values()]
    assert len(set(labels)) == len(labels)
    # The columns that compare with the reference are adjacent, so that a table can name the reference once for all.
    compared = [column.compared for column in columns.values()]
    assert compared == sorted(compared)


def test_a_cell_holds_the_number_or_both_ends_of_a_range():
    found = passport(torch.tensor([[0.5, 0.25], [1.0, 0.5]]), torch.eye(2), causal=False)
    assert found.cell("row_sum_min") == "0.75 … 1.5"
    assert found.cell("density") == 1.0


@pytest.mark.parametrize(
    ("low", "high", "negative", "whole"),
    [(1, 1, 0, True), (0.996, 1.004, 0.0004, True), (0.994, 1, 0, False), (1, 1.006, 0, False), (1, 1, 0.0006, False)],
)
def test_rows_are_distributions_only_if_they_sum_to_one_without_negative_mass(low, high, negative, whole):
    assert rows_are_distributions(low, high, negative) == whole


def test_sparsity_is_over_visible_keys():
    rows = torch.ones(6, 6).tril() / torch.arange(1, 7)[:, None]
    assert passport(rows, rows, causal=True).sparsity == pytest.approx(1)
    assert passport(rows, rows, causal=False).sparsity < 0.8


def test_a_table_has_one_row_with_every_number():
    weights = torch.rand(2, 5, 5).softmax(-1)
    found = passport(weights, weights, causal=False)
    [row] = found.to_frame().to_dict("records")
    assert row == dataclasses.asdict(found)
