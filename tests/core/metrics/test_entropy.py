import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from attention_core import metrics

real = st.floats(-10, 10, width=32)


def reference(row, base=math.e):
    """Return the entropy by its formula, in plain Python."""
    total = sum(abs(x) for x in row)
    return -sum(abs(x) / total * math.log(abs(x) / total, base) for x in row if x) if total else 0.0


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_uniform_rows_have_log_n(n):
    rows = torch.full((2, n, n), 1 / n)
    torch.testing.assert_close(metrics.entropy(rows), torch.full((2, n), math.log(n), dtype=torch.float64))
    torch.testing.assert_close(metrics.entropy(rows, base=2), torch.full((2, n), math.log2(n), dtype=torch.float64))


def test_one_hot_and_zero_rows_have_entropy_zero():
    assert metrics.entropy(torch.eye(5)).tolist() == [0.0] * 5
    assert metrics.entropy(torch.zeros(3, 3)).tolist() == [0.0] * 3


def test_entropy_of_a_quarter_and_three_quarters():
    rows = torch.tensor([[0.25, 0.75]])
    assert float(metrics.entropy(rows, base=2)) == pytest.approx(2 - 0.75 * math.log2(3))


@settings(max_examples=80, deadline=None)
@given(
    arrays(np.float32, array_shapes(min_dims=2, max_dims=4, max_side=6), elements=real),
    st.sampled_from([2, math.e, 10]),
)
def test_the_entropy_of_any_rows_follows_the_formula(a, base):
    found = metrics.entropy(torch.from_numpy(a), base=base).numpy()
    expected = np.array([reference([float(x) for x in row], base) for row in a.reshape(-1, a.shape[-1])])
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-12)


def test_entropy_ignores_sign_scale_and_order_of_keys():
    a = torch.rand(4, 9, 9, generator=torch.Generator().manual_seed(0))
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    expected = metrics.entropy(a)
    for same in (-a, 250 * a, a * torch.tensor([1.0, -1.0, 1.0] * 3), a[..., order]):
        torch.testing.assert_close(metrics.entropy(same), expected)


def test_distribution_sums_to_one_except_for_zero_rows():
    rows = torch.tensor([[-3.0, 1.0], [0.0, 0.0], [1e-30, 3e-30]])
    expected = torch.tensor([[0.75, 0.25], [0.0, 0.0], [0.25, 0.75]], dtype=torch.float64)
    torch.testing.assert_close(metrics.distribution(rows), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_every_type_is_measured_in_float64(dtype):
    rows = torch.tensor([[0.5, 0.25, 0.25]], dtype=dtype)
    found = metrics.entropy(rows)
    assert found.dtype == torch.float64
    assert float(found) == pytest.approx(1.5 * math.log(2), abs=1e-12)


def by_formula(row, seen):
    """Return E|a| divided by the root of E a², in plain Python."""
    kept = [abs(x) for x in row[:seen]]
    square = sum(x * x for x in kept) / seen
    return sum(kept) / seen / math.sqrt(square) if square else 0.0


@settings(max_examples=80, deadline=None)
@given(arrays(np.float32, array_shapes(min_dims=2, max_dims=3, max_side=6), elements=real))
def test_sparsity_follows_its_formula(a):
    found = metrics.sparsity(torch.from_numpy(a)).numpy()
    expected = [by_formula([float(x) for x in row], len(row)) for row in a.reshape(-1, a.shape[-1])]
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 9, 100])
def test_sparsity_of_equal_weights_and_of_a_single_weight(n):
    uniform, single = torch.full((n, n), -3.0), torch.eye(n)
    torch.testing.assert_close(metrics.sparsity(uniform), torch.ones(n, dtype=torch.float64))
    torch.testing.assert_close(metrics.sparsity(single), torch.full((n,), n**-0.5, dtype=torch.float64))
    assert metrics.sparsity(torch.zeros(2, n)).tolist() == [0, 0]


def test_hidden_keys_do_not_change_sparsity():
    rows = torch.ones(6, 6).tril()
    torch.testing.assert_close(metrics.sparsity(rows, torch.arange(1, 7)), torch.ones(6, dtype=torch.float64))
    assert metrics.sparsity(rows)[0] == pytest.approx(6**-0.5)
