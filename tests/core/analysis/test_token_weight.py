"""Tests of the weight of an early token: like 1/i without decay, like γ^(i - j) with decay."""

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.state.token_weight import causal_weights, first_tokens_share, later_weights, variants
from attention_core.inputs.source import first_tokens


def record(n=64, **settings):
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=3, d=8, **settings))


def matrix_with_column(column, token):
    """Return a causal matrix of which only one column is used."""
    weights = np.zeros((token + len(column), token + len(column)))
    weights[token:, token] = column
    return weights


@pytest.mark.parametrize("token", [0, 3, 10])
def test_a_uniform_weight_falls_like_one_over_the_row(token):
    found = later_weights(matrix_with_column(1 / (token + 1 + np.arange(50)), token), token)
    assert found.power == pytest.approx(-1)
    assert (found.factor, found.half_life) == (None, None)
    assert found.weights[0] == 1 / (token + 1)


@pytest.mark.parametrize(("decay", "half_life"), [(0.95, 13.513), (0.9, 6.579), (0.5, 1)])
def test_a_decayed_weight_has_a_factor_and_a_half_life(decay, half_life):
    found = later_weights(matrix_with_column(decay ** np.arange(30), 4), 4, decay=decay)
    assert found.factor == pytest.approx(decay)
    assert found.half_life == pytest.approx(half_life, abs=1e-3)
    assert found.power is None


def test_the_first_rows_are_left_out_of_the_fit():
    i = np.arange(200)
    law = 0.95**i / np.cumsum(0.95**i)  # The normaliser grows most in the first rows.
    found = later_weights(matrix_with_column(law, 0), 0, decay=0.95)
    assert found.start == 20
    assert found.half_life == pytest.approx(13.5, rel=0.05)
    spoilt = np.where(i < 3, 1.0, 1 / (i + 1))
    assert later_weights(matrix_with_column(spoilt, 0), 1).start == 3
    assert later_weights(
        matrix_with_column(1 / (i[1:] + 1), 1) * np.where(i < 3, 9, 1)[:, None], 1
    ).power == pytest.approx(-1)


def test_growing_weights_have_no_half_life_and_short_columns_no_fit():
    assert later_weights(matrix_with_column([0.1, 0.1, 0.2, 0.3, 0.5], 0), 0, decay=0.5).half_life is None
    short = later_weights(matrix_with_column([0.3], 2), 2, decay=0.99)
    assert (short.start, short.factor, short.half_life) == (3, None, None)


def test_weights_of_zero_have_no_fit():
    for decay in (None, 0.5):
        found = later_weights(matrix_with_column([0.5, 0.0, 0.0, 0.1], 0), 0, decay=decay)
        assert (found.power, found.factor) == (None, None)


@pytest.mark.parametrize("decay", [0.5, 0.9, 1.0])
def test_equal_keys_give_the_decay_law_exactly(decay):
    # With equal keys, all similarities are equal, so A_ij is γ^(i - j) over its sum.
    qkv = record()
    qkv.k[:] = qkv.k[:, :1]
    weights = causal_weights(qkv, ac.get("retention", decay=decay), head=0)
    i, j = np.indices(weights.shape)
    law = np.tril(decay ** np.abs(i - j))
    np.testing.assert_allclose(weights, law / law.sum(1, keepdims=True), rtol=1e-10)


def test_stronger_decay_gives_early_tokens_less_weight():
    softmax, linear, *decayed = variants([0.7, 0.95], "elu+1")
    assert [a.key for a in (softmax, linear, *decayed)] == ["softmax", "linear", "retention", "retention"]
    ends = [later_weights(causal_weights(record(), a, head=None), 1).weights[-1] for a in (linear, *reversed(decayed))]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] > 1e3 * ends[-1] > 0


def test_heads_are_averaged_and_tiny_weights_do_not_underflow():
    qkv = record(n=256)
    attention = ac.get("retention", decay=0.1)
    average = causal_weights(qkv, attention, head=None)
    one = np.stack([causal_weights(qkv, attention, head=head) for head in range(3)])
    np.testing.assert_allclose(average, one.mean(0))
    assert 0 < average[-1, 0] < 1e-200
    np.testing.assert_allclose(average.sum(1), 1)


def test_causal_weights_of_softmax_equal_the_formula():
    qkv = first_tokens(record(), 16)
    logits = (qkv.q[1].double() @ qkv.k[1].double().T / 8**0.5).masked_fill(
        torch.ones(16, 16).triu(1).bool(), -torch.inf
    )
    np.testing.assert_allclose(causal_weights(qkv, ac.get("softmax"), head=1), logits.softmax(-1), atol=1e-12)


def test_the_share_of_the_first_tokens_in_a_row():
    assert first_tokens_share(np.array([3.0, 1.0, 4.0]), 2) == 0.5
    assert first_tokens_share(np.array([-3.0, 1.0]), 1) == 0.75
    assert first_tokens_share(np.zeros(4), 2) == 0
