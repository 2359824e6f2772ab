import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attention_core import metrics
from attention_core.errors import InputError, ShapeError
from attention_core.ops.softmax.masked import causal_mask, masked_softmax, scores

ROOT = Path(__file__).parents[3]
METRICS = {
    "relative_error": metrics.relative_error,
    "cosine": metrics.cosine,
    "wrong_mass": metrics.wrong_mass,
    "kl_divergence": lambda a, b: metrics.kl_divergence(a, b).mean(-1),
    "top_k_overlap": lambda a, b: metrics.top_k_overlap(a, b, 3).mean(-1),
}


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pair(n=8, heads=3):
    return random(heads, n, n).softmax(-1), random(heads, n, n, seed=1).softmax(-1)


def test_the_metrics_equal_their_numpy_formulas():
    a, b = pair()
    x, y = a.numpy(), b.numpy()
    np.testing.assert_allclose(
        metrics.relative_error(a, b), np.sqrt(((x - y) ** 2).sum((1, 2)) / (y**2).sum((1, 2))), rtol=1e-12
    )
    cosines = (x * y).sum(-1) / np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    np.testing.assert_allclose(metrics.cosine(a, b), cosines.mean(-1), rtol=1e-12)
    np.testing.assert_allclose(metrics.total_variation(a, b), np.abs(x - y).sum(-1) / 2, rtol=1e-12)
    np.testing.assert_allclose(metrics.wrong_mass(a, b), (np.abs(x - y).sum(-1) / 2).mean(-1), rtol=1e-12)
    np.testing.assert_allclose(metrics.kl_divergence(a, b), (x * np.log(x / y)).sum(-1), rtol=1e-9)


@pytest.mark.parametrize("name", METRICS)
def test_each_head_is_measured_separately_in_float64(name):
    a, b = pair()
    found = METRICS[name](a.float(), b.float())
    assert found.dtype == torch.float64
    assert found.shape == (3,)
    for head in range(3):
        torch.testing.assert_close(found[head], METRICS[name](a[head], b[head]), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", METRICS)
def test_the_metrics_do_not_depend_on_the_order_of_tokens(name):
    a, b = pair()
    order = torch.randperm(8, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(METRICS[name](a[:, order][..., order], b[:, order][..., order]), METRICS[name](a, b))


@pytest.mark.parametrize(
    ("name", "same"),
    [("relative_error", 0), ("cosine", 1), ("wrong_mass", 0), ("kl_divergence", 0), ("top_k_overlap", 1)],
)
def test_matrix_compared_with_itself(name, same):
    for a in (pair()[0], torch.eye(4), torch.zeros(4, 4), random(2, 5, 5)):
        assert METRICS[name](a, a).flatten().tolist() == pytest.approx([same] * max(1, a[..., 0, 0].numel()), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_nan_is_never_hidden_in_an_error(name):
    a, b = pair()
    a[0, 2, 3] = math.nan
    found = METRICS[name](a, b)
    assert name == "top_k_overlap" or found[0].isnan()
    assert name != "top_k_overlap" or found[0] < 1
    assert found[1:].isfinite().all()


def test_relative_error_of_a_zero_reference():
    zero, one = torch.zeros(2, 3), torch.ones(2, 3)
    assert float(metrics.relative_error(zero, zero)) == 0
    assert float(metrics.relative_error(one, zero)) == math.inf
    assert float(metrics.relative_error(zero, one)) == 1
    assert float(metrics.relative_error(3 * one, one)) == pytest.approx(2)


def test_cosine_of_outputs():
    a = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    b = torch.tensor([[-2.0, 0.0], [5.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    assert float(metrics.cosine(a, b)) == pytest.approx((-1 + math.sqrt(0.5) + 1 + 0) / 4)


def test_disjoint_rows_have_total_variation_one():
    a, b = torch.eye(4), torch.eye(4).flip(0)
    assert metrics.total_variation(a, b).tolist() == [1.0] * 4
    assert metrics.kl_divergence(a, b).tolist() == [math.inf] * 4
    assert metrics.top_k_overlap(a, b, 1).tolist() == [0.0] * 4


def test_divergences_of_known_distributions():
    a = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5], [0.0, 0.0], [0.0, 0.0], [0.5, 0.5], [-3.0, 3.0]])
    b = torch.tensor([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5], [0.0, 0.0], [0.0, 0.0], [10.0, 10.0]])
    expected = [0.5 * math.log(4 / 3), math.log(2), math.inf, math.inf, 0.0, math.inf, 0.0]
    assert metrics.kl_divergence(a, b).tolist() == pytest.approx(expected)


def test_divergence_is_never_negative():
    rows = random(400, 7).exp()
    found = metrics.kl_divergence(rows, 3 * rows)
    assert (found >= 0).all()
    assert (found < 1e-14).all()


def test_kl_is_finite_from_sparse_to_softmax_only():
    dense = pair()[0]
    sparse = torch.where(dense > 0.1, dense, 0)
    sparse /= sparse.sum(-1, keepdim=True)
    lost = -torch.where(dense > 0.1, dense, 0).sum(-1).log()
    torch.testing.assert_close(metrics.kl_divergence(sparse, dense), lost)
    assert metrics.kl_divergence(dense, sparse).isinf().any()


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (2, 3, 6), elements=st.floats(0, 1)))
def test_pinsker_inequality_holds(rows):
    p, r = metrics.distribution(torch.from_numpy(rows) + 1e-9)
    assert (metrics.total_variation(p, r) ** 2 <= metrics.kl_divergence(p, r) / 2 + 1e-12).all()


def brute_overlap(a, b, k):
    def heaviest(row):
        least = sorted(row)[-min(k, len(row))]
        return {j for j, x in enumerate(row) if x >= least and x > 0}

    one, two = heaviest(a), heaviest(b)
    return len(one & two) / max(len(one), len(two)) if one or two else 1.0


@settings(max_examples=150, deadline=None)
@given(arrays(np.float32, (2, 4, 7), elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0])), st.integers(1, 9))
def test_top_k_overlap_equals_set_overlap(rows, k):
    a, b = torch.from_numpy(rows)
    expected = [brute_overlap(x, y, k) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert metrics.top_k_overlap(a, b, k).tolist() == pytest.approx(expected)


def test_uniform_rows_overlap_by_k_over_n():
    assert metrics.top_k_overlap(torch.full((20, 20), 1 / 20), pair(20, 1)[0][0], 5).tolist() == [0.25] * 20


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10), st.integers(0, 2**31))
def test_no_sparse_matrix_beats_the_oracle(k, seed):
    generator = torch.Generator().manual_seed(seed)
    reference = torch.randn(2, 9, 9, generator=generator, dtype=torch.float64)
    floor = metrics.oracle_top_k_error(reference, k)
    kept = torch.rand(2, 9, 9, generator=generator).argsort(-1) < k
    best_values = torch.where(kept, reference, 0)
    assert (metrics.relative_error(best_values, reference) >= floor - 1e-12).all()
    oracle = torch.where(reference.abs().argsort(-1).argsort(-1) >= 9 - k, reference, 0)
    torch.testing.assert_close(metrics.relative_error(oracle, reference), floor)


def test_oracle_floor_by_hand():
    rows = torch.tensor([[3.0, -4.0, 0.0], [0.0, 0.0, 12.0]])
    assert float(metrics.oracle_top_k_error(rows, 0)) == 1
    assert float(metrics.oracle_top_k_error(rows, 1)) == pytest.approx(3 / 13)
    assert float(metrics.oracle_top_k_error(rows, 2)) == 0
    assert float(metrics.oracle_top_k_error(rows, 50)) == 0
    assert float(metrics.oracle_top_k_error(torch.zeros(3, 3), 1)) == 0
    with pytest.raises(InputError, match="is -1"):
        metrics.oracle_top_k_error(rows, -1)


def test_matrices_of_different_shapes_have_no_relative_error():
    a = torch.ones(2, 3, 3)
    assert metrics.relative_error(a, a[0]).tolist() == [0, 0]
    for other in (a[:, :1], a[0, 0], a[..., :1]):
        with pytest.raises(ShapeError, match="do not match"):
            metrics.relative_error(a, other)


@pytest.mark.parametrize("causal", [False, True])
def test_uniform_error_is_the_error_of_the_mean(causal):
    q, k = random(2, 2, 6, 4)
    softmax = masked_softmax(scores(q, k), causal_mask(6) if causal else None)
    # With values that mark their keys, the plain mean of the values is the matrix of uniform attention.
    marks = torch.eye(6, dtype=torch.float64)
    mean = torch.stack([marks[: i + 1 if causal else 6].mean(0) for i in range(6)]).expand(2, 6, 6)
    torch.testing.assert_close(
        metrics.uniform_error(softmax, causal=causal),
        torch.linalg.matrix_norm(mean - softmax) / softmax.norm(dim=(1, 2)),
    )


def test_relative_errors_are_computed_in_one_place():
    # Only one place may compute this error, because other places had different precision and another result at zero.
    sources = [p for folder in ("attention_core", "app", "pages", "benchmarks") for p in (ROOT / folder).rglob("*.py")]
    assert len(sources) > 300
    elsewhere = [
        f"{path.relative_to(ROOT)}:{i}"
        for path in sources
        for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"norm\(.*-.*/.*norm\(|\(\w+ - \w+\)\.norm\(.*/", line)
    ]
    assert elsewhere == []
