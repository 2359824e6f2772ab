"""Tests of changed lengths: totals and outputs of every normaliser at other lengths, against explicit matrices."""

import math
from dataclasses import replace

import pytest
import torch

import attention_core as ac
from attention_core.experiments import length_drift
from attention_core.experiments.length_drift import NORMALIZERS, SOFTMAX, DriftRow, ratios
from attention_core.inputs import SyntheticSource, SyntheticSpec, from_synthetic
from attention_core.metrics.fit import fit_power

SPEC = SyntheticSpec(heads=2, d=8, n=40)


def measured(*, causal=False, longest=40, **settings):
    tasks = length_drift.tasks(SyntheticSource(SPEC), longest=longest, causal=causal, **settings)
    return [row for task in tasks for row in length_drift.run(task)]


@pytest.mark.parametrize("causal", [False, True])
def test_totals_and_sizes_equal_those_of_the_matrices(causal):
    rows = measured(causal=causal)
    assert {row.n for row in rows} == {10, 14, 20, 28, 40}
    for row in rows:
        qkv = from_synthetic(SyntheticSpec(heads=2, d=8, n=row.n))
        q, k, v = (x[row.head].double() for x in (qkv.q, qkv.k, qkv.v))
        name = row.normalizer
        attention = ac.get("softmax") if name == "softmax" else ac.get("relu2", normalizer=name, base_length=1)
        weights = attention.weights(q, k, causal=causal)
        out = weights @ v
        assert row.total == pytest.approx(float(weights.sum(-1).mean()), rel=1e-4)
        assert row.size == pytest.approx(math.sqrt(float((out * out).sum(-1).mean())), rel=1e-4)


@pytest.mark.parametrize(("name", "exponent"), [("length", 0), ("squared", -1), ("fixed", 1), ("sum", 0)])
def test_the_drift_of_equal_tokens_depends_on_the_divisor_only(name, exponent):
    # With equal keys and equal values, squares sum to n times one number, and no terms cancel.
    rows = []
    for task in length_drift.tasks(SyntheticSource(SPEC), longest=40):
        ones = torch.ones(1, task.n, 4)
        record = replace(from_synthetic(SyntheticSpec(heads=1, d=4, n=task.n)), q=ones, k=ones, v=ones)
        rows += length_drift.run(task, load=lambda source, tokens, record=record: record)
    for measure in ("total", "size"):
        points = {row.n: getattr(row, measure) for row in rows if row.normalizer == name}
        assert fit_power(list(points), list(points.values())).exponent == pytest.approx(exponent, abs=1e-5)


def test_rows_without_weights_count_as_zero():
    record = from_synthetic(SyntheticSpec(heads=1, d=1, n=4))
    q = torch.tensor([[[1.0], [-1.0], [1.0], [-1.0]]])
    empty = replace(record, q=q, k=torch.ones(1, 4, 1), v=torch.full((1, 4, 1), 3.0))
    task = length_drift.tasks(SyntheticSource(SPEC), longest=4)[-1]
    rows = {row.normalizer: row for row in length_drift.run(task, load=lambda source, tokens: empty)}
    assert (rows["sum"].total, rows["softmax"].total) == (0.5, pytest.approx(1))
    assert rows["sum"].size == pytest.approx(3 / math.sqrt(2))
    assert set(rows) == {*NORMALIZERS, "softmax"}


def test_rows_of_different_seeds_are_separate():
    assert {(row.seed, row.head) for row in measured(longest=16, seeds=2)} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_head_without_a_row_sum_at_the_reference_length_is_left_out():
    rows = [
        DriftRow(normalizer=name, n=n, head=head, seed=None, total=total, size=total)
        for name in (*NORMALIZERS, SOFTMAX)
        for head, totals in enumerate(((0.0, 1.0), (2.0, 1.0)))
        for n, total in zip((16, 64), totals, strict=True)
    ]
    assert ratios(rows, 16, "total")["length"] == [(16, 1.0), (64, 0.5)]
    assert ratios(rows, 64, "size")["sum"] == [(16, 0.0), (64, 1.0), (16, 2.0), (64, 1.0)]
