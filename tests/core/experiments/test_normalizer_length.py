import math

import numpy as np
import pytest
import torch

from attention_core.experiments import normalizer_length
from attention_core.experiments.normalizer_length import NormalizerTask, log_normalizer
from attention_core.inputs import QKV, SyntheticSource, SyntheticSpec, from_synthetic
from attention_core.metrics.fit import fit_power

SOURCE = SyntheticSource(SyntheticSpec(heads=2, d=16, n=40))


def record(q, k):
    plain = from_synthetic(SyntheticSpec(n=q.shape[-2], d=q.shape[-1], heads=len(q)))
    return QKV(**{**vars(plain), "q": q, "k": k})


def found(qkv, *, causal=False):
    task = NormalizerTask(source=SOURCE, n=qkv.n, longest=qkv.n, causal=causal, seed=0)
    return {row.normalizer: row for row in normalizer_length.run(task, load=lambda source, tokens: qkv)}


@pytest.mark.parametrize("n", [1, 2, 33, 200])
def test_softmax_sums_to_n_and_relu2_is_empty_for_zero_logits(n):
    rows = found(record(torch.zeros(1, n, 4), torch.zeros(1, n, 4)))
    assert rows["softmax"].log_z == pytest.approx(math.log(n))
    assert rows["softmax"].empty == 0
    assert (rows["relu2"].log_z, rows["relu2"].empty) == (None, 1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 7, 130])
def test_normalizers_equal_their_formulas(n, causal):
    qkv = from_synthetic(SyntheticSpec(n=n, d=16, heads=1, seed=3))
    q, k = qkv.q[0].double().numpy(), qkv.k[0].double().numpy()
    x = q @ k.T / 4
    allowed = np.tril(np.ones((n, n))) if causal else np.ones((n, n))
    totals = {"softmax": (np.exp(x) * allowed).sum(-1), "relu2": (np.maximum(x, 0) ** 2 * allowed).sum(-1)}
    for name, total in totals.items():
        z = log_normalizer(qkv.q[0], qkv.k[0], name, causal=causal).exp().numpy()
        np.testing.assert_allclose(z, total, rtol=1e-4, atol=1e-9)


def test_both_normalizers_grow_as_n_for_equal_keys():
    lengths = (16, 64, 256)
    rows = [found(record(torch.ones(1, n, 4), torch.ones(1, n, 4))) for n in lengths]
    for name in normalizer_length.LOG_NORMALIZERS:
        fit = fit_power(lengths, [math.exp(row[name].log_z) for row in rows])
        assert fit.exponent == pytest.approx(1)


def test_queries_without_positive_logits_are_left_out_and_counted():
    q = torch.tensor([[[1.0], [-1.0], [1.0], [1.0]]])
    row = found(record(q, torch.ones(1, 4, 1)))["relu2"]
    assert row.empty == pytest.approx(0.25)
    assert row.log_z == pytest.approx(math.log(4))


def test_normalizers_of_large_logits_stay_finite():
    row = found(record(torch.full((1, 8, 4), 1e3), torch.full((1, 8, 4), 1e3)))
    assert row["softmax"].log_z == pytest.approx(2e6 + math.log(8))
    assert math.isfinite(row["relu2"].log_z)


def test_a_sweep_is_deterministic_and_tidy():
    tasks = normalizer_length.tasks(SOURCE, longest=40, seeds=2)
    first, again = ([row for task in tasks for row in normalizer_length.run(task)] for _ in range(2))
    assert first == again
    assert [row.n for row in first] == sorted(row.n for row in first)
    assert {(row.seed, row.head) for row in first} == {(0, 0), (0, 1), (1, 0), (1, 1)}
