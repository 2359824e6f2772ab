"""The state of every decoder is the running sum its formula says, and gives the full matrix's outputs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.looks.recurrent_state import grow
from attention_core.registry import recurrent, running_sums


def record(n=20, d=4, heads=2, **settings):
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=heads, d=d, **settings))


def elu(k):
    return np.where(k > 0, k + 1, np.exp(k))


def unit(k):
    return np.concatenate([np.ones((len(k), 1)), k / np.linalg.norm(k, axis=1, keepdims=True)], 1)


def favor(attention):
    """FAVOR+'s features from its formula; the directions alone are the variant's."""

    def phi(k):
        d, like = k.shape[1], torch.zeros(1, k.shape[1], dtype=torch.float64)
        W = attention.variant.anatomy(like, like, like, attention.params, causal=True)["directions"].numpy()
        x = k / d**0.25
        half, along, m = np.square(x).sum(1, keepdims=True) / 2, x @ W.T, len(W)
        if attention.params.kind == "trig":
            return np.exp(half) * np.concatenate([np.cos(along), np.sin(along)], 1) / math.sqrt(m)
        return np.exp(along - half) / math.sqrt(m)

    return phi


LINEAR = {"elu+1": elu, "relu": lambda k: np.maximum(k, 0), "exp": np.exp}
CASES = [
    *((ac.get("linear", feature_map=name), phi, 1.0) for name, phi in LINEAR.items()),
    *((ac.get("retention", feature_map=name, decay=0.8), phi, 0.8) for name, phi in LINEAR.items()),
    (ac.get("cosine"), unit, 1.0),
    *((a, favor(a), 1.0) for a in (ac.get("performer", features=6), ac.get("performer", features=6, kind="trig"))),
]


@pytest.mark.parametrize(("attention", "phi", "decay"), CASES, ids=lambda x: getattr(x, "word", ""))
def test_the_state_is_the_sum_the_formula_says(attention, phi, decay):
    qkv = record()
    grown = grow(qkv, attention, head=1)
    features, v = phi(qkv.k[1].double().numpy()), qkv.v[1].double().numpy()
    fade = np.tril(decay ** np.abs(np.subtract.outer(np.arange(20), np.arange(20))))
    sums = np.einsum("ij,jc,jv->icv", fade, features, v)
    np.testing.assert_allclose(grown.sums, sums, rtol=1e-5, atol=1e-5 * abs(sums).max())
    np.testing.assert_allclose(grown.keys, fade @ features, rtol=1e-5, atol=1e-5 * abs(features).max())
    added = features[:, :, None] * v[:, None, :]
    np.testing.assert_allclose(grown.added, added, rtol=1e-5, atol=1e-6 * abs(added).max())
    assert grown.log_unit == 0


@pytest.mark.parametrize("variant", running_sums(), ids=lambda v: v.key)
def test_outputs_are_those_of_the_full_matrix(variant):
    qkv, attention = record(), ac.get(variant.key)
    grown = grow(qkv, attention, head=0)
    full = attention.weights(qkv.q.double(), qkv.k.double(), causal=True) @ qkv.v.double()
    np.testing.assert_allclose(grown.outputs, full[0], rtol=1e-9, atol=1e-12)
    assert max(grown.difference(i) for i in range(20)) < 1e-10
    wrong = replace(grown, outputs=grown.outputs + np.eye(20, 4))
    assert wrong.difference(2) == pytest.approx(1)


@pytest.mark.parametrize("word", ["linear", "hedgehog", "cosformer~length~9"])
def test_what_a_token_adds_is_the_difference_of_two_sums_where_none_fades(word):
    grown = grow(record(), ac.registry.from_word(word), head=0)
    np.testing.assert_allclose(grown.added[1:], np.diff(grown.sums, axis=0), atol=1e-5 * abs(grown.sums).max())


def test_what_softmax_would_have_answered_stands_beside_it():
    qkv = record()
    grown = grow(qkv, ac.get("linear"), head=1)
    logits = (qkv.q[1] @ qkv.k[1].T / 2).double().masked_fill(torch.ones(20, 20).triu(1).bool(), -torch.inf)
    wanted = (logits.softmax(-1) @ qkv.v[1].double()).numpy()
    np.testing.assert_allclose(grown.softmax, wanted, rtol=1e-5, atol=1e-6)
    gap = np.linalg.norm(grown.outputs[7] - wanted[7]) / np.linalg.norm(wanted[7])
    assert grown.lost(7) == pytest.approx(gap, rel=1e-4)
    assert gap > 1e-3
    assert grown.lost(0) < 1e-9  # one token is all there is


def test_every_variant_with_a_decoder_takes_part():
    assert {v.key for v in recurrent()} == {v.key for v in ac.all_variants() if v.decoder}
    assert {v.key for v in running_sums()} >= {"linear", "cosine", "taylor2", "performer", "retention", "cosformer"}
    others = {v.key for v in recurrent()} - {v.key for v in running_sums()}
    assert others >= {"centred_taylor", "deltanet", "gated_deltanet", "heavy_hitters"}, (
        "their states are no sums over a normaliser"
    )


def test_the_second_order_state_counts_its_tokens():
    grown = grow(record(), ac.get("taylor2"), head=0)
    assert grown.sums.shape == (20, 1 + 4 + 10, 4)
    np.testing.assert_allclose(grown.keys[:, 0], np.arange(1, 21))  # the feature that is always one


def test_a_wide_state_is_followed_over_fewer_tokens():
    grown = grow(record(n=40, d=64), ac.get("taylor2"), head=0)
    assert len(grown.keys) == len(grown.outputs) == len(grown.full) == 2**22 // (2145 * 65)


def test_states_beyond_float32_are_shown_in_units_of_their_own():
    qkv = record()
    large = replace(qkv, k=60 * qkv.k / qkv.k.abs().max() * 4)
    grown = grow(large, ac.get("linear", feature_map="exp"), head=0)
    k = large.k[0].double().numpy()
    assert grown.log_unit == pytest.approx(k.max())
    assert np.isfinite(grown.sums).all()
    shifted = np.cumsum(np.exp(k - k.max()), 0)
    np.testing.assert_allclose(grown.keys, shifted, rtol=1e-5, atol=1e-30)


def test_one_token():
    grown = grow(record(n=1), ac.get("retention"), head=0)
    np.testing.assert_allclose(grown.sums, grown.added)
