"""Tests of the leak map: causal variants hide the future, pooled ones do not, and sizes equal actual changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.matrix import influence as module
from attention_core.analysis.matrix.influence import MAX_TOKENS, ROUNDING, influence
from attention_core.attention import Attention


def record(n=24, heads=2, d=8, **settings):
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=heads, d=d, **settings))


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("head", [1, None])
def test_exactly_the_non_causal_variants_leak(variant, head):
    found = influence(record(), ac.get(variant.key), head=head)
    assert found.causal == (variant.causal_reason is None)
    assert (found.leaking_share > 0) == (variant.causal_reason is not None)
    assert sum(found.earlier_changes(t) for t in range(24)) == round(found.leaking_share * 24 * 23 / 2)
    # A token's own output changes, unless the token has been eliminated.
    assert (np.diag(found.moved) > 0).mean() > 0.4
    assert not ((found.moved > 0) & (found.moved <= ROUNDING)).any()


def test_a_variant_that_wrongly_claims_to_be_causal_is_detected():
    softmax = ac.get("softmax")

    def looks_ahead(q, k, v, p, *, causal):
        return softmax.variant.attend(q, k, v, p, causal=False)

    leaking = Attention(replace(softmax.variant, attend=looks_ahead), softmax.params)
    assert influence(record(), leaking, head=0).leaking_share == 1


def test_a_token_changes_only_the_outputs_within_the_window():
    found = influence(record(n=40), ac.get("local", window=5), head=0)
    t, i = np.indices((40, 40))
    np.testing.assert_array_equal(found.moved > 0, (i >= t) & (i <= t + 5))


def test_output_changes_are_proportional_to_the_weights_of_the_replaced_token():
    # If weights do not depend on queries and keys, output i changes by A_it (v' - v): the map is A, up to token t.
    attention, qkv = ac.get("synthesizer", kind="random"), record()
    moved = influence(qkv, attention, head=0).moved
    weights = attention.weights(qkv.q[:1].double(), qkv.k[:1].double(), causal=True)[0].numpy()
    for t in range(24):
        np.testing.assert_allclose(moved[t, t:] / moved[t, t], weights[t:, t] / weights[t, t], rtol=1e-5)
    usual = np.sqrt(np.square(weights @ qkv.v[0].double().numpy()).sum(-1).mean())
    size = np.sqrt(np.square(qkv.v[0].numpy()).sum(-1).mean())
    # The replacement is as long as the head's values, so the length of v' - v is between zero and twice that length.
    length = moved[-1, -1] * usual / weights[-1, -1]
    assert 0.1 * size < length < 3 * size


@pytest.mark.parametrize("key", ["softmax", "nystrom", "power_bert"])
def test_the_result_does_not_depend_on_the_block_size(key, monkeypatch):
    whole = influence(record(), ac.get(key), head=None).moved
    monkeypatch.setattr(module, "MAX_NUMBERS", 1)
    np.testing.assert_allclose(influence(record(), ac.get(key), head=None).moved, whole, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("heads", "head", "shown"), [(1, 0, 256), (2, 0, 256), (2, None, 203)])
def test_long_inputs_are_truncated_earlier_with_more_heads(heads, head, shown):
    found = influence(record(n=300, heads=heads, d=2), ac.get("linear"), head=head)
    assert found.moved.shape == (shown, shown)
    assert MAX_TOKENS == 256


def test_one_token_and_zero_values_do_not_leak():
    assert influence(record(n=1), ac.get("nystrom"), head=0).leaking_share == 0
    qkv = record()
    nothing = replace(qkv, v=torch.zeros_like(qkv.v))
    assert not influence(nothing, ac.get("nystrom"), head=0).moved.any()
