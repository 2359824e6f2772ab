"""Tests of linear attention with a gate from the data: its matrix equals the recurrence, its gates their formula."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from seeded import normal

import attention_core as ac
from attention_core.analysis.state.gating import KINDS, Gate, gated, gated_weights, log_gates
from attention_core.analysis.state.token_weight import causal_weights

RECORD = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=40, heads=3, d=8))
MAPS = {
    "elu+1": lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "exp": np.exp,
}


def recurrent(q, k, v, gates, phi):
    """Return the recurrence's outputs: a token's gate scales the sums, the token is added, and the query reads."""
    sums, keys, out = np.zeros((q.shape[1], v.shape[1])), np.zeros(q.shape[1]), []
    for t in range(len(q)):
        sums, keys = gates[t] * sums + np.outer(phi(k[t]), v[t]), gates[t] * keys + phi(k[t])
        total = phi(q[t]) @ keys
        out.append(phi(q[t]) @ sums / (total or 1.0))
    return np.stack(out)


@pytest.mark.parametrize("feature_map", list(MAPS))
@pytest.mark.parametrize("n", [1, 2, 37])
def test_the_matrix_gives_the_outputs_of_the_recurrence(feature_map, n):
    q, k, v = normal(n, 6), normal(n, 6, seed=1), normal(n, 4, seed=2)
    logs = -normal(n, seed=3).abs()
    weights = gated_weights(q, k, logs, feature_map)
    wanted = recurrent(q.numpy(), k.numpy(), v.numpy(), logs.exp().numpy(), MAPS[feature_map])
    np.testing.assert_allclose((weights @ v).numpy(), wanted, rtol=1e-10, atol=1e-12)
    assert not weights.triu(1).any()


@pytest.mark.parametrize("feature_map", list(MAPS))
@pytest.mark.parametrize("decay", [0.3, 0.9])
def test_equal_gates_give_retention(feature_map, decay):
    logs = torch.full((40,), math.log(decay), dtype=torch.float64)
    q, k = (x[1].double() for x in (RECORD.q, RECORD.k))
    wanted = causal_weights(RECORD, ac.get("retention", decay=decay, feature_map=feature_map), head=1)
    np.testing.assert_allclose(gated_weights(q, k, logs, feature_map).numpy(), wanted, rtol=1e-9, atol=1e-300)
    open_gates = gated_weights(q, k, torch.zeros_like(logs), feature_map)
    linear = causal_weights(RECORD, ac.get("linear", feature_map=feature_map), head=1)
    np.testing.assert_allclose(open_gates.numpy(), linear, rtol=1e-9, atol=1e-300)


def test_the_surprise_gate_depends_on_the_cosine_with_the_mean_of_earlier_keys():
    k = normal(12, 5)
    found = log_gates(k, Gate(kind="surprise", decay=0.8)).exp().tolist()
    assert found[0] == 1
    for t in range(1, 12):
        mean = k[:t].mean(0)
        cosine = float(k[t] @ mean / (k[t].norm() * mean.norm()))
        assert found[t] == pytest.approx(0.8 ** (1 - cosine))
    keys = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [-1.0, -1 / 3]]).double()
    alike, across, against = log_gates(keys, Gate(kind="surprise", decay=0.8)).exp().tolist()[1:]
    assert (alike, across, against) == (pytest.approx(1), pytest.approx(0.8), pytest.approx(0.64))


def test_a_random_gate_is_a_sigmoid_of_the_direction_of_the_key():
    k = normal(400, 16)
    gates = log_gates(k, Gate(kind="drawn", decay=0.9)).exp()
    logits = (gates[1:] / (1 - gates[1:])).log() - math.log(9)
    directions = k[1:] / k[1:].norm(dim=-1, keepdim=True)
    w = torch.linalg.lstsq(directions, logits[:, None]).solution[:, 0]
    torch.testing.assert_close(directions @ w, logits)
    assert 0.5 < float(w.std()) < 1.6
    torch.testing.assert_close(log_gates(1e3 * k, Gate(kind="drawn", decay=0.9)).exp(), gates)
    other = log_gates(k, Gate(kind="drawn", decay=0.9, seed=1)).exp()
    assert (other - gates)[1:].abs().max() > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_does_not_depend_on_later_keys(kind):
    k, gate = normal(20, 4), Gate(kind=kind, decay=0.9)
    changed = k.clone()
    changed[11:] *= -50
    torch.testing.assert_close(log_gates(changed, gate)[:11], log_gates(k, gate)[:11], rtol=0, atol=0)
    assert (log_gates(k, gate) <= 0).all()
    torch.testing.assert_close(log_gates(k[:11], gate), log_gates(k, gate)[:11], rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_the_even_decay_is_the_geometric_mean_of_the_gates(kind):
    found = gated(RECORD, Gate(kind=kind, decay=0.8), "elu+1", head=2)
    assert found.gates[0] == 1
    assert found.mean == pytest.approx(np.prod(found.gates[1:]) ** (1 / 39))
    even = causal_weights(RECORD, ac.get("retention", decay=found.mean), head=2)
    np.testing.assert_allclose(found.even, even, rtol=1e-9)
    assert np.ptp(found.gates[1:]) > 0.05
    assert abs(found.weights - found.even).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_heads_are_averaged(kind):
    gate = Gate(kind=kind, decay=0.9)
    each = [gated(RECORD, gate, "exp", head=head) for head in range(3)]
    all_of_them = gated(RECORD, gate, "exp", head=None)
    np.testing.assert_allclose(all_of_them.weights, np.mean([one.weights for one in each], 0))
    np.testing.assert_allclose(all_of_them.even, np.mean([one.even for one in each], 0))
    np.testing.assert_allclose(all_of_them.gates, np.exp(np.mean([np.log(one.gates) for one in each], 0)))
    np.testing.assert_allclose(all_of_them.weights.sum(1), 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0.0, 1e6])
def test_keys_of_any_size_give_finite_weights_and_valid_gates(kind, size):
    record = replace(RECORD, k=size * RECORD.k)
    for feature_map in MAPS:
        found = gated(record, Gate(kind=kind, decay=0.9), feature_map, head=0)
        assert np.isfinite(found.weights).all()
        assert ((found.gates > 0) & (found.gates <= 1)).all()
    one = gated(ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=1)), Gate(kind=kind, decay=0.9), "elu+1", head=0)
    assert (one.weights.tolist(), one.mean, one.gates.tolist()) == ([[1.0]], 1.0, [1.0])
