"""Tests of the weight of an early token: like 1/i without decay, like γ^(i - j) with decay."""

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.state.token_weight import causal_weights, fade, first_tokens_share, variants
from attention_core.inputs.source import first_tokens


def record(n=64, **settings):
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=3, d=8, **settings))


def falling(column, token):
    """Return a causal matrix of which only one column is used."""
    weights = np.zeros((token + len(column), token + len(column)))
    weights[token:, token] = column
    return weights


@pytest.mark.parametrize("token", [0, 3, 10])
def test_an_even_share_falls_like_one_over_the_row(token):
    found = fade(falling(1 / (token + 1 + np.arange(50)), token), token)
    assert found.power == pytest.approx(-1)
    assert (found.factor, found.half_life) == (None, None)
    assert found.weights[0] == 1 / (token + 1)


@pytest.mark.parametrize(("decay", "half_life"), [(0.95, 13.513), (0.9, 6.579), (0.5, 1)])
def test_a_decay_falls_by_a_factor(decay, half_life):
    found = fade(falling(decay ** np.arange(30), 4), 4, decay=decay)
    assert found.factor == pytest.approx(decay)
    assert found.half_life == pytest.approx(half_life, abs=1e-3)
    assert found.power is None


def test_the_first_tokens_to_come_do_not_spoil_the_fit():
    i = np.arange(200)
    law = 0.95**i / np.cumsum(0.95**i)  # The normaliser grows most in the first rows.
    found = fade(falling(law, 0), 0, decay=0.95)
    assert found.start == 20
    assert found.half_life == pytest.approx(13.5, rel=0.05)
    spoilt = np.where(i < 3, 1.0, 1 / (i + 1))
    assert fade(falling(spoilt, 0), 1).start == 3
    assert fade(falling(1 / (i[1:] + 1), 1) * np.where(i < 3, 9, 1)[:, None], 1).power == pytest.approx(-1)


def test_what_does_not_fall_has_no_half_life_and_what_is_short_no_fit():
    assert fade(falling([0.1, 0.1, 0.2, 0.3, 0.5], 0), 0, decay=0.5).half_life is None
    short = fade(falling([0.3], 2), 2, decay=0.99)
    assert (short.start, short.factor, short.half_life) == (3, None, None)


def test_weights_of_zero_have_no_fit():
    for decay in (None, 0.5):
        found = fade(falling([0.5, 0.0, 0.0, 0.1], 0), 0, decay=decay)
        assert (found.power, found.factor) == (None, None)


@pytest.mark.parametrize("decay", [0.5, 0.9, 1.0])
def test_equal_keys_give_the_law_itself(decay):
    # With equal keys, all similarities are equal, so A_ij is γ^(i - j) over its sum.
    qkv = record()
    qkv.k[:] = qkv.k[:, :1]
    weights = causal_weights(qkv, ac.get("retention", decay=decay), head=0)
    i, j = np.indices(weights.shape)
    law = np.tril(decay ** np.abs(i - j))
    np.testing.assert_allclose(weights, law / law.sum(1, keepdims=True), rtol=1e-10)


def test_decay_drowns_early_tokens_sooner_than_plain_accumulation_and_that_sooner_than_nothing():
    softmax, linear, *decayed = variants([0.7, 0.95], "elu+1")
    assert [a.key for a in (softmax, linear, *decayed)] == ["softmax", "linear", "retention", "retention"]
    ends = [fade(causal_weights(record(), a, head=None), 1).weights[-1] for a in (linear, *reversed(decayed))]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] > 1e3 * ends[-1] > 0


def test_heads_are_averaged_and_tiny_weights_are_no_zeros():
    qkv = record(n=256)
    attention = ac.get("retention", decay=0.1)
    average = causal_weights(qkv, attention, head=None)
    one = np.stack([causal_weights(qkv, attention, head=head) for head in range(3)])
    np.testing.assert_allclose(average, one.mean(0))
    assert 0 < average[-1, 0] < 1e-200
    np.testing.assert_allclose(average.sum(1), 1)


def test_softmax_is_softmax():
    qkv = first_tokens(record(), 16)
    logits = (qkv.q[1].double() @ qkv.k[1].double().T / 8**0.5).masked_fill(
        torch.ones(16, 16).triu(1).bool(), -torch.inf
    )
    np.testing.assert_allclose(causal_weights(qkv, ac.get("softmax"), head=1), logits.softmax(-1), atol=1e-12)


def test_the_first_tokens_share_of_a_row():
    assert first_tokens_share(np.array([3.0, 1.0, 4.0]), 2) == 0.5
    assert first_tokens_share(np.array([-3.0, 1.0]), 1) == 0.75
    assert first_tokens_share(np.zeros(4), 2) == 0
