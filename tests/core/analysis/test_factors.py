"""Tests of numbers of matrices and their factors, each against an explicit definition."""

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core import metrics
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks.membership import landmark_inputs
from attention_core.analysis.matrix.inside import anatomy_of_head, logits
from attention_core.analysis.state.running_sum import sums_of_query
from attention_core.inputs import SyntheticSource, SyntheticSpec

QKV = SyntheticSource(SyntheticSpec(n=12, d=4, heads=2, sharpness=2.0)).load()
NUMBERS = np.random.default_rng(0)


def test_the_relative_error_is_the_relative_frobenius_norm():
    matrix, reference = NUMBERS.standard_normal((2, 5, 5)).astype(np.float32)
    expected = metrics.relative_error(*map(torch.from_numpy, (matrix, reference)))
    assert factors.relative_error_of(matrix, reference) == pytest.approx(float(expected), rel=1e-6)
    assert factors.relative_error_of(reference, reference) == 0


def test_uniform_weights_are_equal_over_the_allowed_keys():
    found = factors.uniform_weights(np.tri(3, dtype=bool))
    np.testing.assert_allclose(found, [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_products_and_ranks_by_hand():
    left, right = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0, 3.0], [0.0, 0.0, 1.0]])
    made = factors.product(left, right)
    assert made.tolist() == [[1, 1, 3], [2, 2, 6], [0, 0, 1]]
    assert factors.rank(made) == factors.rank(made.T) == 2


def test_lengths_of_vectors_and_of_matrices():
    assert factors.lengths(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [5, 0]
    assert factors.lengths(np.ones((2, 3, 3))).tolist() == [3, 3]


def test_cosines_equal_those_of_the_angles_and_zero_vectors_give_zero():
    turns = np.array([0.0, 0.5, 2.0])
    x = np.stack([np.cos(turns), np.sin(turns)], -1) * np.array([[1.0], [5.0], [0.1]])
    np.testing.assert_allclose(factors.cosines(x, x), np.cos(turns[:, None] - turns))
    assert factors.cosines(x, np.zeros((1, 2))).tolist() == [[0], [0], [0]]


@pytest.mark.parametrize(("terms", "count"), [([1, 1, 1, 1], 4), ([0, -7, 0, 0], 1), ([3, -1, 0, 0], 1.6)])
def test_the_participation_ratio_counts_the_terms_of_similar_size(terms, count):
    assert factors.participation_ratio(np.array([terms], float)) == pytest.approx(count)


def test_perplexity_is_the_exponential_of_the_entropy():
    rows = torch.tensor([[0.25, 0.25, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]]).double()
    np.testing.assert_allclose(factors.perplexity(rows.numpy()), metrics.entropy(rows).exp())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("query", [0, 7])
def test_the_sums_of_a_query_give_the_output_of_linear_attention(query, causal):
    linear = ac.get("linear")
    found = sums_of_query(QKV, linear, query, head=1, causal=causal)
    answer = linear.attend(*(x.double() for x in (QKV.q, QKV.k, QKV.v)), causal=causal)[1, query]
    np.testing.assert_allclose(found.output, answer)


def test_the_softmax_of_the_logits_gives_the_softmax_weights():
    softmax = ac.get("softmax").weights(QKV.q, QKV.k)[1]
    np.testing.assert_allclose(torch.from_numpy(logits(QKV, 1)).softmax(-1), softmax, rtol=1e-5)


def test_the_anatomy_uses_the_first_tokens_and_no_mask():
    performer = ac.get("performer", features=8)
    parts = anatomy_of_head(QKV, performer, 1, tokens=5)
    assert parts["query_features"].shape == (5, 8)
    whole = anatomy_of_head(QKV, performer, 1)
    np.testing.assert_array_equal(parts["directions"], whole["directions"])
    estimate = whole["query_features"] @ whole["key_features"].T
    np.testing.assert_allclose(
        estimate / estimate.sum(-1, keepdims=True), performer.weights(QKV.q, QKV.k)[1], rtol=1e-4
    )


def test_landmark_inputs_are_the_queries_and_keys_of_the_head():
    found = landmark_inputs(QKV, 1)
    assert torch.equal(found["query"], QKV.q[1])
    assert torch.equal(found["key"], QKV.k[1])
