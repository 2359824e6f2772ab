"""Tests of powers of ReLU: shares by their formula, entropies that fall with the power, and no effect of a factor."""

import math

import pytest
import torch

import attention_core as ac
from attention_core.experiments import powers
from attention_core.experiments.powers import POWERS, shares
from attention_core.inputs import SyntheticSource, SyntheticSpec, from_synthetic


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("power", POWERS)
def test_shares_follow_the_formula(power, causal):
    qkv = from_synthetic(SyntheticSpec(n=9, d=4, heads=1, seed=2))
    found = shares(qkv.q[0], qkv.k[0], power, causal=causal)
    q, k = qkv.q[0].tolist(), qkv.k[0].tolist()
    for i in range(9):
        keys = range(i + 1 if causal else 9)
        logits = [sum(a * b for a, b in zip(q[i], k[j], strict=True)) / 2 for j in keys]
        raised = [max(x, 0.0) ** power for x in logits]
        wanted = [x / (math.fsum(raised) or 1.0) for x in raised] + [0.0] * (9 - len(keys))
        assert found[i].tolist() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_the_second_power_is_squared_relu(causal):
    qkv = from_synthetic(SyntheticSpec(n=33, d=8, heads=2))
    q, k = qkv.q.double(), qkv.k.double()
    wanted = ac.get("relu2", normalizer="sum").weights(q, k, causal=causal)
    torch.testing.assert_close(shares(q, k, 2.0, causal=causal), wanted)


def test_a_higher_power_is_never_more_even_and_no_power_notices_a_factor():
    tasks = powers.tasks(SyntheticSource(SyntheticSpec(n=48, heads=2)), n=48)
    rows = [row for task in tasks for row in powers.run(task)]
    for head in range(2):
        falling = [row.entropy for row in rows if row.head == head]
        assert len(falling) == len(POWERS)
        assert falling == sorted(falling, reverse=True)
        assert falling[0] - falling[-1] > 0.5
    assert max(row.change for row in rows) < 1e-12


def test_equal_logits_stay_even_and_rows_without_one_are_zero():
    ones = torch.ones(3, 2)
    for power in POWERS:
        assert torch.equal(shares(ones, ones, power, causal=False), torch.full((3, 3), 1 / 3, dtype=torch.float64))
        assert not shares(ones, -ones, power, causal=False).any()


def test_powers_of_large_logits_stay_finite():
    x = torch.tensor([[1e6], [5e5]])
    found = shares(x, x, 8.0, causal=False)
    assert found[0].tolist() == pytest.approx([256 / 257, 1 / 257])
