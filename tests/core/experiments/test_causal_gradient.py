"""Tests of gradients by running sums, against finite differences and autograd, and of the bytes in memory."""

import io

import numpy as np
import pytest
import torch

from attention_core.errors import InputError
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import (
    ALGORITHMS,
    STATE_COPIES,
    STATES,
    SUMS,
    BytesRow,
    BytesTask,
    DifferenceTask,
)
from attention_core.experiments.causal_modes import MATRIX
from attention_core.inputs import SyntheticSource, SyntheticSpec, UploadSource
from attention_core.limits import HOSTED

SOURCE = SyntheticSource(SyntheticSpec(n=150, d=8, heads=2))


def peak_bytes(algorithm, n, d=16, d_v=16):
    [row] = causal_gradient.run(BytesTask(word="linear", algorithm=algorithm, n=n, d=d, d_v=d_v))
    return row.peak_bytes


@pytest.mark.parametrize("word", ["linear", "linear~feature_map~exp", "linear~feature_map~softmax"])
@pytest.mark.parametrize("head", [None, 1])
def test_gradients_of_all_algorithms_agree_up_to_rounding(word, head):
    rows = causal_gradient.run(DifferenceTask(word=word, source=SOURCE, head=head))
    assert {(r.dtype, r.gradient, r.algorithm) for r in rows} == {
        (dtype, letter, algorithm)
        for dtype in ("float32", "float64")
        for letter in "qkv"
        for algorithm in (STATES, MATRIX)
    }
    assert all(r.difference < {"float32": 2e-5, "float64": 1e-13}[r.dtype] for r in rows)
    assert max(r.difference for r in rows if r.dtype == "float32") > 1e-8


def uploaded(**arrays):
    data = io.BytesIO()
    np.savez(data, **arrays)
    return DifferenceTask(word="linear", source=UploadSource.of("a.npz", data.getvalue()), head=None)


def test_rounding_is_not_reported_as_a_difference_for_equal_values():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 40, 4), dtype=np.float32)
    # The gradients of q and k are only rounding errors.
    rows = causal_gradient.run(uploaded(q=q, k=k, v=np.ones_like(q)))
    assert all(r.difference < 1e-5 for r in rows)


def test_a_gradient_that_is_not_finite_is_refused():
    rng = np.random.default_rng(2)
    q, k, v = rng.standard_normal((3, 1, 40, 8), dtype=np.float32)
    with pytest.raises(InputError, match="not finite"):
        causal_gradient.run(uploaded(q=1e3 * q, k=-1e3 * abs(k), v=v))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_gives_the_gradient_by_finite_differences(algorithm):
    q, k, v = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    slope = torch.randn(v.shape, generator=torch.Generator().manual_seed(0), dtype=v.dtype)
    found = causal_gradient._gradients("linear", algorithm, q, k, v)()

    def loss(q, k, v):
        matrix = ((x := [torch.where(t > 0, t + 1, t.exp()) for t in (q, k)])[0] @ x[1].mT).tril()
        return float((matrix / matrix.sum(-1, keepdim=True) @ v * slope).sum())

    for place, gradient in enumerate(found):
        step = torch.zeros(5, 3, dtype=torch.float64)
        step[2, 1] = 1e-6
        moved = [[x + sign * step if i == place else x for i, x in enumerate((q, k, v))] for sign in (1, -1)]
        assert float(gradient[2, 1]) == pytest.approx((loss(*moved[0]) - loss(*moved[1])) / 2e-6, rel=1e-5)


def test_autograd_stores_every_state_and_running_sums_store_no_states():
    n, d = 512, 16
    states = 4 * n * d * (d + 1)
    assert 3 * states < peak_bytes(STATES, n) < (STATE_COPIES + 0.5) * states
    assert peak_bytes(SUMS, n) < states
    assert peak_bytes(MATRIX, n) > 4 * 4 * n * n


def test_the_memory_ratio_grows_with_head_size_and_memory_with_length():
    wide_ratio = peak_bytes(STATES, 512, 32, 32) / peak_bytes(SUMS, 512, 32, 32)
    assert wide_ratio > 1.5 * peak_bytes(STATES, 512) / peak_bytes(SUMS, 512)
    assert peak_bytes(STATES, 1024) / peak_bytes(STATES, 512) == pytest.approx(2, abs=0.05)
    assert peak_bytes(SUMS, 1024) / peak_bytes(SUMS, 512) < 2.05
    assert peak_bytes(MATRIX, 1024) / peak_bytes(MATRIX, 512) > 3.5


def test_the_sizes_of_queries_and_values_may_differ():
    assert peak_bytes(STATES, 64, 4, 12) == pytest.approx(peak_bytes(STATES, 64, 12, 4), rel=0.4)
    rows = causal_gradient.run(DifferenceTask(word="linear", source=SOURCE, head=0))
    assert rows


def test_lengths_stay_within_the_memory_limit_of_the_profile(monkeypatch):
    assert causal_gradient.lengths(32, 32) == (16, 32, 64, 128, 256, 512, 1024, 2048)
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    longest = causal_gradient.lengths(128, 128)[-1]
    assert peak_bytes(STATES, 64, 128, 128) * longest / 64 <= 1.05 * HOSTED.timed_bytes
    assert causal_gradient.lengths(256, 256)[-1] < 1024


def test_the_difference_task_is_first_and_lengths_increase():
    first, *rest = causal_gradient.tasks(SOURCE, d=8, d_v=8)
    assert isinstance(first, DifferenceTask)
    assert [t.algorithm for t in rest[:3]] == list(ALGORITHMS)
    assert [t.n for t in rest] == sorted(t.n for t in rest)


def test_ratios_are_given_only_for_lengths_with_both_counts():
    counted = ((SUMS, 16, 10), (STATES, 16, 80), (STATES, 32, 160))
    rows = [BytesRow(algorithm=algorithm, n=n, peak_bytes=peak_bytes) for algorithm, n, peak_bytes in counted]
    assert causal_gradient.ratios(rows, STATES) == [(16, 8)]
