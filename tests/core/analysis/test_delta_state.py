"""Tests of the growth of the delta rule's state, against its explicit recurrence."""

import numpy as np
import pytest

import attention_core as ac
from attention_core.analysis.state.delta_state import growth_by_strength, growth_by_token

QKV = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=60, d=6, heads=2))


def state_norm(k, v, beta, decay):
    found = np.zeros((v.shape[-1], k.shape[-1]))
    for key, value, b in zip(k, v, np.broadcast_to(beta, len(k)), strict=True):
        found = decay * found @ (np.eye(len(key)) - b * np.outer(key, key)) + b * np.outer(value, key)
    return np.linalg.norm(found)


@pytest.mark.parametrize(("attention", "decay"), [(ac.get("deltanet"), 1.0), (ac.get("gated_deltanet"), 0.9)])
def test_the_state_equals_the_recurrence_with_unit_keys(attention, decay):
    k, v = QKV.k[1].double().numpy(), QKV.v[1].double().numpy()
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    found = growth_by_strength(QKV, attention, 1, (0.5, 1.0, 2.5))
    assert found.sizes == pytest.approx([state_norm(k, v, beta, decay) for beta in (0.5, 1.0, 2.5)])
    assert found.eigenvalues == pytest.approx([0.5 * decay, 0.0, -1.5 * decay])


def test_the_exact_step_uses_unnormalised_keys_and_stays_bounded():
    k, v = QKV.k[1].double().numpy() / 6**0.25, QKV.v[1].double().numpy()
    square = (k**2).sum(-1)
    found = growth_by_strength(QKV, ac.get("deltanet", keys="exact"), 1, (0.5, 30.0))
    assert found.sizes == pytest.approx(
        [state_norm(k, v, (1 - np.exp(-eta * square)) / square, 1.0) for eta in (0.5, 30.0)]
    )
    assert found.eigenvalues == pytest.approx(np.exp(-np.array([0.5, 30.0]) * square.max()))


def test_a_state_that_overflows_is_reported_as_infinite():
    spec = ac.inputs.SyntheticSpec(n=1024, d=4, heads=1)
    assert growth_by_strength(ac.inputs.from_synthetic(spec), ac.get("deltanet"), 0, (9.0,)).sizes == [np.inf]


@pytest.mark.parametrize("strength", [0.5, 2.5])
def test_growth_by_token_equals_the_recurrence_at_each_token(strength):
    k, v = QKV.k[1].double().numpy(), QKV.v[1].double().numpy()
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    found = growth_by_token(QKV, ac.get("gated_deltanet"), 1, strength)
    assert found.sizes == pytest.approx([state_norm(k[:i], v[:i], strength, 0.9) for i in range(1, 61)])
    assert np.linalg.norm(found.state) == pytest.approx(found.sizes[-1])
    assert found.state.shape == (6, 6)
    assert found.eigenvalues == pytest.approx(np.full(60, 0.9 * (1 - strength)))


def test_a_growing_state_is_infinite_after_it_overflows():
    spec = ac.inputs.SyntheticSpec(n=1024, d=4, heads=1)
    found = growth_by_token(ac.inputs.from_synthetic(spec), ac.get("deltanet"), 0, 9.0)
    assert np.isinf(found.sizes[-1])
    assert np.isfinite(found.sizes[0])
