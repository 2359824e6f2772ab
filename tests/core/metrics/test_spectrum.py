import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core import metrics
from attention_core.errors import InputError


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("n", [1, 2, 9, 64])
def test_identity_has_full_effective_rank(n):
    assert float(metrics.rank(torch.eye(n))) == n
    assert float(metrics.effective_rank(torch.eye(n))) == pytest.approx(n)


def test_rank_one_has_effective_rank_one():
    one = random(2, 20, 1) @ random(2, 1, 20, seed=1)
    assert metrics.rank(one).tolist() == [1, 1]
    assert metrics.effective_rank(one).tolist() == pytest.approx([1, 1])
    assert float(metrics.effective_rank(torch.full((30, 30), 1 / 30))) == pytest.approx(1)


def test_zero_matrix_has_effective_rank_zero():
    assert float(metrics.rank(torch.zeros(4, 4))) == 0
    assert float(metrics.effective_rank(torch.zeros(4, 4))) == 0


def test_effective_rank_of_known_singular_values():
    left, right = (torch.linalg.qr(random(3, 3, seed=seed)).Q for seed in (1, 2))
    matrix = left @ torch.diag(torch.tensor([2.0, 1.0, 1.0], dtype=torch.float64)) @ right
    assert float(metrics.effective_rank(matrix)) == pytest.approx(math.exp(1.5 * math.log(2)))
    assert metrics.singular_values(matrix).tolist() == pytest.approx([2, 1, 1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("true_rank", [1, 5, 31])
def test_rank_ignores_rounding_errors(dtype, true_rank):
    matrix = random(3, 40, true_rank, dtype=dtype) @ random(3, true_rank, 40, seed=1, dtype=dtype)
    assert metrics.rank(matrix).tolist() == [true_rank] * 3
    assert np.linalg.matrix_rank(matrix.numpy()).tolist() == [true_rank] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(4, 4), (3, 400), (400, 3), (20, 64), (64, 20), (1, 9), (150, 150)])
def test_rank_equals_that_of_numpy_near_its_tolerance(shape, dtype):
    rows, columns, small = *shape, min(shape)
    left, right = (torch.linalg.qr(random(side, small, seed=seed)).Q for seed, side in enumerate((rows, columns)))
    limit = max(shape) * torch.finfo(dtype).eps
    for factor in (0.3, 3):
        values = torch.ones(small, dtype=torch.float64)
        values[small // 2 :] = factor * limit
        matrix = (left @ torch.diag(values) @ right.mT).to(dtype)
        assert float(metrics.rank(matrix)) == np.linalg.matrix_rank(matrix.numpy())


def test_rank_tolerance_uses_the_precision_of_the_matrix():
    tiny = torch.diag(torch.tensor([1.0, 1e-9], dtype=torch.float64))
    assert float(metrics.rank(tiny)) == 2
    assert float(metrics.rank(tiny.float())) == 1
    assert float(metrics.rank(torch.eye(300, dtype=torch.bfloat16))) == 300


def test_singular_values_equal_those_of_numpy():
    matrix = random(2, 3, 17, 17).softmax(-1).float()
    found = metrics.singular_values(matrix)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, np.linalg.svd(matrix.double().numpy(), compute_uv=False), atol=1e-13)


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    decades=st.floats(0, 12),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_singular_values_over_many_decades_equal_those_of_numpy(rows, columns, decades, seed, dtype):
    left, right = (torch.linalg.qr(random(size, size, seed=seed + i)).Q for i, size in enumerate((rows, columns)))
    few = min(rows, columns)
    sizes = 10 ** -torch.linspace(0, decades, few, dtype=torch.float64)
    matrix = (left[:, :few] * sizes @ right[:few]).to(dtype)
    wanted = np.linalg.svd(matrix.double().numpy(), compute_uv=False)
    off = 3e-8 if dtype == torch.float32 else 1e-13
    np.testing.assert_allclose(metrics.singular_values(matrix), wanted, rtol=0, atol=off * wanted[0])


def test_non_finite_head_is_nan_without_affecting_others():
    matrix = random(3, 6, 6)
    expected = metrics.effective_rank(matrix[2])
    matrix[0, 1, 1], matrix[1, 0, 0] = math.nan, math.inf
    for found in (metrics.rank(matrix), metrics.effective_rank(matrix), metrics.truncated_svd_error(matrix, 2)):
        assert found[:2].isnan().all()
        assert found[2].isfinite()
    torch.testing.assert_close(metrics.effective_rank(matrix)[2], expected)


def test_the_effective_rank_does_not_depend_on_the_order_of_tokens():
    matrix = random(2, 12, 12).softmax(-1)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(metrics.effective_rank(matrix[:, order][..., order]), metrics.effective_rank(matrix))


@settings(max_examples=60, deadline=None)
@given(m=st.integers(0, 12), seed=st.integers(0, 2**31), sharpness=st.sampled_from([0.3, 1.0, 6.0]))
def test_no_low_rank_matrix_beats_the_svd(m, seed, sharpness):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    reference = (sharpness * draw(2, 10, 10)).softmax(-1)
    floor = metrics.truncated_svd_error(reference, m)
    left = draw(2, 10, m)
    rival = left @ torch.linalg.lstsq(left, reference).solution if m else torch.zeros_like(reference)
    # Each step of alternating least squares gives a better competitor; the best is close to the lower bound.
    for _ in range(4):
        if 0 < m <= 10:
            right = torch.linalg.lstsq(left, reference).solution
            left = torch.linalg.lstsq(right.mT, reference.mT).solution.mT
            rival = left @ right
        assert (metrics.relative_error(rival, reference) >= floor - 1e-12).all()
    u, s, vh = torch.linalg.svd(reference)
    best = u[..., :m] * s[..., None, :m] @ vh[..., :m, :]
    torch.testing.assert_close(metrics.relative_error(best, reference), floor, atol=1e-12, rtol=1e-9)


def test_svd_error_at_rank_zero_and_full_rank():
    matrix = random(7, 7)
    assert float(metrics.truncated_svd_error(matrix, 0)) == pytest.approx(1)
    assert float(metrics.truncated_svd_error(matrix, 7)) == 0
    assert float(metrics.truncated_svd_error(matrix, 700)) == 0
    assert float(metrics.truncated_svd_error(torch.zeros(7, 7), 3)) == 0
    assert float(metrics.truncated_svd_error(torch.eye(4), 3)) == pytest.approx(0.5)
    assert float(metrics.truncated_svd_error(random(4, 10), 7)) == 0
    with pytest.raises(InputError, match="is -3"):
        metrics.truncated_svd_error(torch.eye(4), -3)
