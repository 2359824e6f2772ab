import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attention_core import metrics

square = st.integers(1, 7).flatmap(
    lambda n: arrays(np.float32, (2, n, n), elements=st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.0]))
)


@settings(max_examples=60, deadline=None)
@given(square)
def test_against_plain_sums(a):
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


def test_negative_mass_at_its_ends():
    assert metrics.negative_mass(torch.tensor([[[1.0, -3.0]], [[0.0, 0.0]], [[-1.0, -1.0]]])).tolist() == [0.75, 0, 1]


def test_mean_distance_in_tokens():
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
