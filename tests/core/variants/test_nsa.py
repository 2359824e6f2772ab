"""Tests of native sparse attention against its paper's three branches, in loops over queries, blocks and keys."""

import pytest
import torch
from seeded import normal

import attention_core as ac

OPEN = {"compressed": "gate_compressed", "selected": "gate_selected", "near": "gate_window"}


def check(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", OPEN)
def test_each_part_equals_the_matrix_with_only_its_gate_open(name, causal):
    q, k = normal(30, 6), normal(30, 6, seed=1)
    settings = {"block": 4, "blocks": 2, "window": 5}
    gates = {gate: float(part == name) for part, gate in OPEN.items()}
    parts = ac.get("nsa", **settings).anatomy(q, k, k, causal=causal)
    torch.testing.assert_close(parts[name], ac.get("nsa", **settings, **gates).weights(q, k, causal=causal))


def test_branches_with_zero_gates_add_nothing():
    a = ac.get("nsa", gate_compressed=0.0, gate_selected=0.0, gate_window=0.0)
    q, k = normal(20, 6), normal(20, 6, seed=1)
    for causal in (False, True):
        assert not a.weights(q, k, causal=causal).any()
        assert not a.attend(q, k, k, causal=causal).any()
        assert not a.variant.pattern(q, k, a.params, causal=causal).any()
    assert a.cost(1024, 16).multiply_adds == 0
