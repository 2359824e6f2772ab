"""Tests of the weight of an early token: like 1/i without decay, like γ^(i - j) with decay."""

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.state.token_weight import causal_weights, first_tokens_share, variants
from attention_core.inputs.source import first_tokens


def record(n=64, **settings):
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=3, d=8, **settings))


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
    ends = [causal_weights(record(), a, head=None)[-1, 1] for a in (linear, *reversed(decayed))]
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
