"""Tests of the gated attention unit, against its paper's pseudocode in plain loops, and of its cost, against counts."""

import dataclasses
import math

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.state.gau import (
    CHANNELS,
    UnitWeights,
    analyse_unit,
    gate_distance,
    random_unit,
    run_unit,
    unit_tokens,
)

RECORD = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=12, heads=6, d=8))
RELU2 = ac.get("relu2")


def double(unit: UnitWeights) -> UnitWeights:
    return UnitWeights(**{f.name: getattr(unit, f.name).double() for f in dataclasses.fields(unit)})


def silu(x):
    return x / (1 + math.exp(-x))


def unit_by_pseudocode(x, unit, *, causal):
    """Return ``O = U ⊙ (A V)``, computed in loops over plain numbers."""
    n, s = len(x), len(unit.shared[0])

    def project(row, matrix):
        return [silu(sum(a * w[c] for a, w in zip(row, matrix, strict=True))) for c in range(len(matrix[0]))]

    u, v, z = ([project(row, m.tolist()) for row in x] for m in (unit.gate, unit.value, unit.shared))
    (gq, gk), (bq, bk) = unit.scale.tolist(), unit.offset.tolist()
    out = []
    for i in range(n):
        mixed, seen = [0.0] * len(v[0]), i + 1 if causal else n
        for j in range(seen):
            qk = sum((gq[c] * z[i][c] + bq[c]) * (gk[c] * z[j][c] + bk[c]) for c in range(s))
            a = max(0.0, qk / math.sqrt(s)) ** 2 / seen
            mixed = [m + a * value for m, value in zip(mixed, v[j], strict=True)]
        out.append([gate * m for gate, m in zip(u[i], mixed, strict=True)])
    return torch.tensor(out, dtype=torch.float64)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 9])
def test_the_unit_equals_the_pseudocode_of_the_paper(n, causal):
    x = torch.randn(n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    unit = double(random_unit(6, seed=3))
    passed = run_unit(x, unit, RELU2, causal=causal)
    torch.testing.assert_close(passed.gate * passed.attended, unit_by_pseudocode(x.tolist(), unit, causal=causal))


@pytest.mark.parametrize("normalizer", ["length", "squared", "fixed", "sum"])
def test_every_channel_uses_the_same_matrix_with_rows_scaled_by_the_gate(normalizer):
    attention = ac.get("relu2", normalizer=normalizer)
    x, unit = unit_tokens(RECORD), random_unit(48, seed=0)
    passed = run_unit(x, unit, attention, causal=False)
    value = torch.nn.functional.silu(x @ unit.value)
    for c in (0, 50, 95):
        own = torch.diag(passed.gate[:, c]) @ passed.weights
        torch.testing.assert_close(own @ value[:, c], (passed.gate * passed.attended)[:, c])
    if normalizer == "sum":
        sums = passed.weights.sum(-1)
        torch.testing.assert_close(sums[sums > 0], torch.ones_like(sums[sums > 0]))


def test_the_input_is_the_normalised_values_of_all_heads_concatenated():
    x = unit_tokens(RECORD)
    raw = np.concatenate(list(RECORD.v.numpy()), axis=1)
    wanted = (raw - raw.mean(1, keepdims=True)) / raw.std(1, keepdims=True)
    np.testing.assert_allclose(x.numpy(), wanted, atol=1e-4)


def test_a_random_unit_depends_on_its_seed_and_keeps_the_variance():
    one, again, other = random_unit(400, 0), random_unit(400, 0), random_unit(400, 1)
    assert torch.equal(one.gate, again.gate)
    assert not torch.equal(one.gate, other.gate)
    assert not torch.equal(one.gate, one.value)
    assert (one.gate.shape, one.shared.shape, random_unit(20, 0).gate.shape) == ((400, CHANNELS), (400, 128), (20, 40))
    assert float((torch.ones(1, 400) @ one.gate).std()) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("causal", [False, True])
def test_the_analysis_reports_softmax_heads_and_their_distance_from_the_mean(causal):
    found = analyse_unit(RECORD, RELU2, causal=causal)
    heads = ac.get("softmax").weights(RECORD.q, RECORD.k, causal=causal).double()
    np.testing.assert_allclose(found.heads, heads[:4], atol=1e-6)
    apart = [float((h - heads.mean(0)).abs().sum()) / 2 / 12 for h in heads]
    assert found.head_difference == pytest.approx(sum(apart) / 6, rel=1e-4)
    assert analyse_unit(RECORD.of_head(2), RELU2, causal=causal).head_difference == pytest.approx(0, abs=1e-6)
    passed = run_unit(unit_tokens(RECORD), random_unit(48, 0), RELU2, causal=causal)
    np.testing.assert_allclose(found.gate * found.attended, passed.gate * passed.attended)
    assert found.gate_distance == gate_distance(passed.gate * passed.attended, passed.attended)


def test_the_gate_distance_ignores_a_common_factor():
    mixed = torch.tensor([[3.0, 4.0]])
    assert gate_distance(-2 * mixed, mixed) == pytest.approx(0, abs=1e-12)
    assert gate_distance(torch.tensor([[4.0, -3.0]]), mixed) == pytest.approx(1)
    assert gate_distance(torch.tensor([[3.0, 0.0]]), mixed) == pytest.approx(0.8)
    assert gate_distance(torch.zeros(1, 2), mixed) is None
    gate = torch.full((5, 3), 0.4)
    assert gate_distance(gate * torch.ones(5, 3), torch.ones(5, 3)) == pytest.approx(0, abs=1e-7)


def test_a_single_token_and_zero_values_are_analysed():
    one = analyse_unit(ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=1, heads=1, d=4)), RELU2, causal=False)
    assert one.weights.shape == (1, 1)
    nothing = dataclasses.replace(RECORD, v=torch.zeros_like(RECORD.v))
    assert analyse_unit(nothing, RELU2, causal=False).gate_distance is None
