"""Tests of second-order Taylor attention: the exact parabola, softmax near zero, and features in blocks."""

import pytest
import torch
from seeded import normal

import attention_core as ac
from attention_core.benchmarking.counting import count
from attention_core.metrics import relative_error
from attention_core.ops.linear.monomials import BLOCK, feature_count, monomials

taylor2, softmax = ac.get("taylor2"), ac.get("softmax")


@pytest.mark.parametrize("d", [1, 2, 5, 64])
def test_each_pair_is_one_feature(d):
    q, k = normal(2, 7, d)
    of_q, of_k = monomials(q), monomials(k)
    assert of_q.shape == (feature_count(d), 7) == (1 + d + d * (d + 1) // 2, 7)
    x = q @ k.T / d**0.5
    torch.testing.assert_close(of_q.T @ of_k, 1 + x + x**2 / 2)
    # All features are linearly independent, so that not one can be left out.
    assert torch.linalg.matrix_rank(monomials(normal(3 * feature_count(5), 5))) == feature_count(5)


def test_the_error_against_softmax_grows_with_the_third_power_of_logits():
    q, k = normal(2, 4, 30, 8)
    errors = [float(relative_error(taylor2.weights(s * q, k), softmax.weights(s * q, k)).mean()) for s in (0.1, 0.05)]
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.1)


def test_weights_are_positive_for_any_logits():
    q, k = normal(2, 4, 60, 8, size=30.0)
    A = taylor2.weights(q, k)
    assert (A > 0).all()
    # Far from zero, the squared term dominates, so opposite queries give similar weights.
    assert relative_error(A, taylor2.weights(-q, k)).max() < 0.05
    flat = taylor2.weights(normal(1, 9, 8), torch.zeros(1, 9, 8, dtype=torch.float64))
    torch.testing.assert_close(flat, torch.full_like(flat, 1 / 9))


@pytest.mark.parametrize("causal", [False, True])
def test_features_are_never_in_memory_for_all_tokens(causal):
    def peak(n, *, training):
        q, k, v = (x.float().requires_grad_(training) for x in normal(3, n, 16))

        def call():
            out = taylor2.attend(q, k, v, causal=causal)
            if training:
                torch.autograd.grad(out.sum(), (q, k, v))

        return count(call).peak_elements

    # Only the outputs grow, once in blocks and once together. All features would take 153 numbers per token.
    assert peak(2048, training=False) - peak(1024, training=False) <= 2 * 16 * 1024
    # Training also keeps one state per block, and gradients.
    growth = (peak(2048, training=True) - peak(1024, training=True)) / 1024
    assert growth <= 153 * 17 / BLOCK * 1.1 + 10 * 16


def test_float32_is_accurate_over_long_sums():
    q, k, v = normal(3, 4096, 16, size=2.0)
    for causal in (False, True):
        exact = taylor2.attend(q, k, v, causal=causal)
        assert relative_error(taylor2.attend(q.float(), k.float(), v.float(), causal=causal).double(), exact) < 1e-5
