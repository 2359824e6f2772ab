"""Tests of the lower bound on a matrix's error: derived from its rank and its zeros, and never above its error."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core import metrics
from attention_core.metrics.floor import error_floor


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attention(seed, n, sharpness=2.0):
    return (sharpness * drawn(seed, n, n)).softmax(-1)


def test_svd_errors_equal_numpy_residuals():
    reference = attention(0, 12).expand(2, 12, 12)
    own = reference[0].numpy()
    u, s, vh = np.linalg.svd(own)
    left = [np.linalg.norm(own - (u[:, :m] * s[:m]) @ vh[:m]) / np.linalg.norm(own) for m in range(13)]
    found = metrics.truncated_svd_errors(reference)
    assert found.shape == (2, 13)
    np.testing.assert_allclose(found[1], left, atol=1e-12)


def test_top_k_errors_equal_sorted_residuals():
    reference = attention(1, 9)
    found = metrics.oracle_top_k_errors(reference)
    for k in range(10):
        kept = np.zeros((9, 9))
        for i, row in enumerate(reference.numpy()):
            best = sorted(range(9), key=lambda j: -row[j])[:k]
            kept[i, best] = row[best]
        assert float(found[k]) == pytest.approx(np.linalg.norm(kept - reference.numpy()) / float(reference.norm()))


def test_rows_can_have_different_numbers_of_keys():
    reference = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert float(metrics.oracle_keys_error(reference, torch.tensor([2, 1]))) == pytest.approx(6 / math.sqrt(125))
    assert float(metrics.oracle_keys_error(reference, torch.tensor([0, 2]))) == pytest.approx(5 / math.sqrt(125))
    assert float(metrics.oracle_keys_error(reference, torch.tensor([2, 2]))) == 0


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 14), seed=st.integers(0, 999), share=st.floats(0.05, 1.0), single=st.booleans())
def test_no_matrix_has_an_error_below_its_floor(n, seed, share, single):
    reference = attention(seed, n)
    # Matrices close to the bound of their kind: the reference with entries set to zero or directions removed.
    sparse = reference * (torch.rand(n, n, generator=torch.Generator().manual_seed(seed)) < share)
    u, s, vh = torch.linalg.svd(reference)
    m = max(1, round(share * n))
    low = (u[:, :m] * s[:m]) @ vh[:m]
    for own in (sparse, low, low.float() if single else low, reference):
        floor = error_floor(own, reference)
        # A matrix of low rank loses that rank when it is rounded to its type, and may be closer by that much.
        rounding = n * torch.finfo(own.dtype).eps
        assert floor.error <= float(metrics.relative_error(own, reference)) + rounding + 1e-12


def test_low_rank_matrix_reaches_the_rank_floor():
    reference = attention(3, 16)
    u, s, vh = torch.linalg.svd(reference)
    best = (u[:, :5] * s[:5]) @ vh[:5]
    floor = error_floor(best, reference)
    assert (floor.kind, floor.rank, floor.keys) == ("rank", 5, 16)
    assert floor.error == pytest.approx(float(metrics.relative_error(best, reference)), abs=1e-9)


def test_sparse_matrix_reaches_the_keys_floor():
    reference = attention(4, 16)
    kept = torch.where(reference >= reference.topk(3).values[:, -1:], reference, 0)
    floor = error_floor(kept, reference)
    assert (floor.kind, floor.keys) == ("keys", 3)
    assert floor.rank is None
    assert floor.error == pytest.approx(float(metrics.relative_error(kept, reference)), abs=1e-12)


def test_full_dense_matrix_has_no_floor():
    floor = error_floor(attention(5, 10), attention(6, 10))
    assert (floor.kind, floor.error, floor.rank) == ("", 0, 10)


def test_the_error_floor_is_the_higher_of_both_floors():
    reference = attention(7, 12)
    # Equal rows, every fourth of which is empty: rank one, and no key in every fourth row.
    own = reference[0].expand(12, 12) * (torch.arange(12) % 4 > 0)[:, None]
    keys = torch.where(torch.arange(12) % 4 > 0, 12, 0)
    both = float(metrics.truncated_svd_error(reference, 1)), float(metrics.oracle_keys_error(reference, keys))
    floor = error_floor(own, reference)
    assert floor.error == pytest.approx(max(both))
    assert floor.kind == ("rank" if both[0] > both[1] else "keys")


def test_singular_values_beyond_the_rank_lower_the_floor():
    u, _ = torch.linalg.qr(drawn(3, 12, 12))
    v, _ = torch.linalg.qr(drawn(4, 12, 12))
    sizes = torch.tensor([1.0, 0.5, 0.25] + [0.05] * 9, dtype=torch.float64)
    weights = ((u * sizes) @ v.T).bfloat16()  # Singular values below a tenth of the largest may be rounding errors.
    reference = attention(5, 12)
    found = error_floor(weights, reference)
    own, others = (torch.linalg.svdvals(x.double()) for x in (weights, reference))
    rank = found.rank
    tail, left = own[rank:].square().sum().sqrt(), others[rank:].square().sum().sqrt()
    assert rank == 3
    assert tail > 0.1
    assert found.error == pytest.approx(float((left - tail) / others.square().sum().sqrt()), rel=1e-5)
