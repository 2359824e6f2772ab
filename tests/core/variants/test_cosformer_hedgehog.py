"""Tests of the properties of cosFormer, Hedgehog and cosine attention."""

import pytest
import torch
from seeded import normal

import attention_core as ac


def test_cosformer_with_a_very_long_length_equals_relu_linear_attention():
    q, k = normal(40, 6), normal(40, 6, seed=1)
    linear = ac.get("linear", feature_map="relu").weights(q, k, causal=True)
    torch.testing.assert_close(ac.get("cosformer", length=65_536).weights(q, k, causal=True), linear, rtol=1e-5, atol=0)


def test_cosformer_weights_are_not_negative_beyond_its_length():
    q, k = normal(200, 6), normal(200, 6, seed=1)
    A = ac.get("cosformer", length=20).weights(q, k, causal=True)
    assert (A >= 0).all()
    ones = torch.ones(60, 4, dtype=torch.float64)
    A = ac.get("cosformer", length=20).weights(ones, ones, causal=True)
    assert A[20:, 0].max() < 1e-15, "weights twenty tokens away are zero"
    torch.testing.assert_close(A[59, 20:], A[59, 20].expand(40))


@pytest.mark.parametrize("length", [1, 25, 41, 50, 64, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cosformer_applies_relu_before_the_angle(length, dtype):
    # Beyond the length, all tokens have a quarter turn, whose cosine 0 is rounded to a negative number at some lengths.
    n = length + 60
    q, k, v = normal(n, 6).to(dtype), normal(n, 6, seed=1).to(dtype), normal(n, 3, seed=2).to(dtype)
    q[-1] = -q[-1].abs() - 0.1
    k[0] = -k[0].abs() - 0.1
    attention = ac.get("cosformer", length=length)
    found, out = attention.weights(q, k, causal=True), attention.attend(q, k, v, causal=True)
    wanted = attention.variant.definition(q.double(), k.double(), v.double(), attention.params, causal=True)
    torch.testing.assert_close(found.double() @ v.double(), wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(out.double(), wanted, rtol=1e-5, atol=1e-5)
    assert (found[-1] == 0).all(), "a query without a positive entry has a zero row"
    assert (out[-1] == 0).all()
    assert (found[:, 0] == 0).all(), "a key without a positive entry has a zero column"


@pytest.mark.parametrize("length", [25, 64, 100])
def test_cosformer_weight_is_zero_at_its_length(length):
    # The only key that shares an entry with the last query is a quarter turn away.
    q, k = torch.zeros(length + 1, 2), torch.zeros(length + 1, 2)
    q[:, 0], k[:, 1], k[0] = 1.0, 1.0, torch.tensor([1.0, 0.0])
    weights = ac.get("cosformer", length=length).weights(q, k, causal=True)
    assert (weights[length - 1] == torch.eye(length + 1)[0]).all()
    assert (weights[length] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cosine_weights_are_not_negative_for_keys_opposite_to_the_query(dtype):
    for d in (1, 3, 16, 64, 256):
        q = normal(200, d, seed=d).to(dtype)
        k = -q * torch.linspace(0.1, 10, 200, dtype=dtype)[:, None]
        for causal in (False, True):
            assert (ac.get("cosine").weights(q, k, causal=causal) >= 0).all()
