"""Tests of the properties of the delta rule, and a comparison with Qwen3-Next in transformers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seeded import normal
from transformers.models.qwen3_next.modeling_qwen3_next import (
    torch_chunk_gated_delta_rule,
    torch_recurrent_gated_delta_rule,
)

import attention_core as ac
from attention_core.ops.delta.delta_rule import beta_from_strength, normalise, unit_vectors
from attention_core.ops.delta.fast_weights import RuleInputs, final_state

DELTA = ac.get("deltanet")


@pytest.mark.parametrize("reference", [torch_recurrent_gated_delta_rule, torch_chunk_gated_delta_rule])
@pytest.mark.parametrize(("strength", "decay"), [(1.0, 1.0), (0.7, 0.9), (0.3, 0.5)])
def test_the_delta_rule_equals_qwen3_next_with_constant_gates(reference, strength, decay):
    q, k, v = (normal(1, 2, 130, size, seed=size).float() for size in (8, 8, 8))
    beta = torch.full((1, 130, 2), strength)
    found, _ = reference(
        *(x.transpose(1, 2) for x in (q, k, v)),
        g=torch.full_like(beta, math.log(decay)),
        beta=beta,
        initial_state=None,
        output_final_state=False,
        use_qk_l2norm_in_kernel=True,
    )
    own = ac.get("gated_deltanet", strength=strength, decay=decay).attend(q, k, v, causal=True)
    # Qwen3-Next scales queries by 1 / √d, and adds 1e-6 to the squared lengths.
    torch.testing.assert_close(own, found.transpose(1, 2) * math.sqrt(8), rtol=1e-4, atol=1e-5)


def test_repeated_key_retrieves_its_last_value():
    keys, v = torch.eye(4).double().repeat(2, 1), normal(8, 3, seed=1)
    torch.testing.assert_close(DELTA.attend(keys, keys, v), torch.cat([v[4:], v[4:]]))
    torch.testing.assert_close(DELTA.attend(keys, keys, v, causal=True), v)


@given(st.integers(1, 80), st.integers(1, 8), st.integers(0, 50))
def test_unit_keys_keep_every_entry_of_the_inverse_within_one(n, d, seed):
    """Check the entries of ``(I + K Kᵀ ⊙ M⁻)⁻¹`` (kexue.fm/archives/11563)."""
    parts = DELTA.anatomy(normal(n, d), normal(n, d, seed=seed), normal(n, 1), causal=True)
    k, inverse, units = parts["keys"], parts["inverse"], torch.eye(n).double()
    assert inverse.abs().max() <= 1 + 1e-9
    torch.testing.assert_close((units + (k @ k.T).tril(-1)) @ inverse, units, rtol=1e-9, atol=1e-9)


def growth(strength, size=1.0, n=400):
    """Return the size of the state after repeating one key, with values that always differ from what the key reads."""
    k, v = torch.full((n, 1), size).double(), (-1.0) ** torch.arange(n).double().unsqueeze(-1)

    def rule(q, k, p, first):
        beta = torch.full_like(k, strength)
        return RuleInputs(q, k, beta, None, beta)

    return float(final_state(rule, k, v, None).abs().max())


def test_the_rule_is_stable_up_to_two_over_the_squared_length_of_its_keys():
    assert growth(1.9) < 25
    assert growth(2.1) > 1e10
    assert growth(1.0, size=1.4) < 50
    assert growth(1.0, size=1.5) > 1e10


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_exact_step_is_always_stable(size):
    p = DELTA.variant.params(keys="exact", strength=2.0)
    k = normalise(size * normal(50, 8, seed=1), p)
    beta = beta_from_strength(k, p.keys, p.strength)
    eigenvalue = 1 - beta * k.square().sum(-1, keepdim=True)
    torch.testing.assert_close(eigenvalue, torch.exp(-2.0 * k.square().sum(-1, keepdim=True)))
    assert bool(((eigenvalue >= 0) & (eigenvalue <= 1)).all())


def test_a_key_of_zeros_writes_nothing_and_a_query_of_zeros_reads_nothing():
    for keys in ("unit", "exact"):
        attention = ac.get("deltanet", keys=keys)
        q, k, v = normal(5, 4), normal(5, 4, seed=1), normal(5, 3, seed=2)
        q[1], k[2] = 0, 0
        matrix = attention.weights(q, k, causal=True)
        assert not matrix[1].any()
        assert not matrix[:, 2].any()
        assert attention.attend(q, k, v, causal=True).isfinite().all()


@pytest.mark.parametrize(
    ("dtype", "length"),
    [(torch.float32, length) for length in (1e-18, 1e-15, 1e-12, 1.0, 1e12, 1e15, 1e18)]
    + [(torch.float64, length) for length in (1e-150, 1e-110, 1e-50, 1.0, 1e50, 1e110, 1e150)],
)
def test_unit_vectors_and_their_gradients_are_exact_for_very_short_and_very_long_vectors(dtype, length):
    expected, grad = torch.nn.functional.normalize(normal(6, 8), dim=-1), normal(6, 8, seed=1)
    x = (length * expected).to(dtype).requires_grad_()
    found = unit_vectors(x)
    found.backward(grad.to(dtype))
    # The derivative of x / |x| is the projection orthogonal to x, divided by |x|.
    projected = grad - (grad * expected).sum(-1, keepdim=True) * expected
    tolerance = {"rtol": 0, "atol": 8 * torch.finfo(dtype).eps}
    torch.testing.assert_close(found.double(), expected, **tolerance)
    torch.testing.assert_close(x.grad.double() * length, projected, **tolerance)


def test_a_zero_vector_has_a_finite_gradient():
    x = torch.zeros(1, 4, requires_grad=True)
    unit_vectors(x).sum().backward()
    assert x.grad.isfinite().all()
