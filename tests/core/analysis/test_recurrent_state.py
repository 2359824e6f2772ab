"""Tests of decoder states: they follow their formulas, and give the outputs of the full matrix."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.state.recurrent_state import state_history
from attention_core.registry import matrix_states, recurrent


def record(n=20, d=4, heads=2, **settings):
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=heads, d=d, **settings))


def elu(k):
    return np.where(k > 0, k + 1, np.exp(k))


def unit(k):
    return np.concatenate([np.ones((len(k), 1)), k / np.linalg.norm(k, axis=1, keepdims=True)], 1)


def favor(attention):
    """Return FAVOR+ features by their formula; only the directions come from the variant."""

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
def test_the_state_equals_the_sum_in_the_formula(attention, phi, decay):
    qkv = record()
    grown = state_history(qkv, attention, head=1)
    features, v = phi(qkv.k[1].double().numpy()), qkv.v[1].double().numpy()
    fade = np.tril(decay ** np.abs(np.subtract.outer(np.arange(20), np.arange(20))))
    sums = np.einsum("ij,jc,jv->icv", fade, features, v)
    np.testing.assert_allclose(grown.sums, sums, rtol=1e-5, atol=1e-5 * abs(sums).max())
    np.testing.assert_allclose(grown.keys, fade @ features, rtol=1e-5, atol=1e-5 * abs(features).max())
    added = features[:, :, None] * v[:, None, :]
    np.testing.assert_allclose(grown.added, added, rtol=1e-5, atol=1e-6 * abs(added).max())
    assert grown.log_unit == 0


def unit_keys(k):
    return k / np.linalg.norm(k, axis=1, keepdims=True)


def gates_from_keys(k):
    """Return gates computed from the entries of each key, with the default root."""
    return (1 / (1 + np.exp(-k))) ** (1 / 16)


def centred(k, v):
    """Return the tokens of softmax as a delta rule: keys and values relative to their means, with capped steps.

    A step is 1/t unless that would remove more than everything.
    """
    t = np.arange(1, len(k) + 1)[:, None]
    means_k, means_v = np.cumsum(k, 0) / t, np.cumsum(v, 0) / t
    c, new = (k - means_k) / k.shape[1] ** 0.25, v - np.concatenate([np.zeros_like(v[:1]), means_v[:-1]])
    step = 1 / np.maximum(t[:, 0], (c**2).sum(1))
    alpha = np.where(t > 1, 1 - 1 / t, 0.5) * np.ones_like(k)
    return c, new, alpha, step / alpha[:, 0], step


ONE = np.ones((20, 4))
RULES = [
    ("scalar_decay~decay~0.8", lambda k, v: (k, v, 0.8 * ONE, None, ONE[:, 0])),
    ("gla", lambda k, v: (k, v, gates_from_keys(k), None, ONE[:, 0])),
    ("deltanet~strength~0.5", lambda k, v: (unit_keys(k), v, ONE, ONE[:, 0] / 2, ONE[:, 0] / 2)),
    ("gated_deltanet~decay~0.8~strength~2", lambda k, v: (unit_keys(k), v, 0.8 * ONE, 2 * ONE[:, 0], 2 * ONE[:, 0])),
    ("kda", lambda k, v: (unit_keys(k), v, gates_from_keys(k), ONE[:, 0], ONE[:, 0])),
    ("softmax_gdn", centred),
]


@pytest.mark.parametrize(("word", "rule"), RULES, ids=[word for word, _ in RULES])
def test_decay_erasure_and_writing_follow_the_recurrence(word, rule):
    qkv = record()
    grown = state_history(qkv, ac.registry.from_word(word), head=1)
    keys, values, alpha, erase, write = rule(qkv.k[1].double().numpy(), qkv.v[1].double().numpy())
    state, near, sizes = np.zeros((4, 4)), {"rtol": 1e-5, "atol": 2e-6 * abs(grown.sums).max()}, []
    for i in range(20):
        np.testing.assert_allclose(grown.state_before(i), state, **near)
        np.testing.assert_allclose(grown.decay_change(i), (alpha[i] - 1)[:, None] * state, **near)
        state = alpha[i][:, None] * state
        erased = np.zeros((4, 4)) if erase is None else -erase[i] * np.outer(keys[i], keys[i] @ state)
        np.testing.assert_allclose(grown.erase_change(i), erased, **near)
        added = write[i] * np.outer(keys[i], values[i])
        np.testing.assert_allclose(grown.added[i], added, **near)
        sizes.append(np.linalg.norm(grown.state_before(i) - state - erased))
        state = state + erased + added
        np.testing.assert_allclose(grown.sums[i], state, **near)
        np.testing.assert_allclose(grown.channel_sizes[i], np.linalg.norm(state, axis=1), **near)
    np.testing.assert_allclose(grown.removed_size, sizes, **near)
    np.testing.assert_allclose(grown.changes.decay_shares, 1 - alpha, rtol=1e-9, atol=1e-12)
    assert (grown.changes.erased_shares is None) == (erase is None)
    if erase is not None:
        np.testing.assert_allclose(grown.changes.erased_shares, erase * (keys**2).sum(1), rtol=1e-9, atol=1e-12)
    assert grown.keys is None
    # This variant stores two means in addition to its matrix.
    assert grown.state_size == 4 * 4 + (8 if word == "softmax_gdn" else 0)


def test_path_erases_along_its_own_directions():
    qkv = record()
    grown = state_history(qkv, ac.get("path", strength=0.5), head=1)
    keys, values = unit_keys(qkv.k[1].double().numpy()), qkv.v[1].double().numpy()
    state = np.zeros((4, 4))
    for i in range(20):
        w = np.concatenate([-keys[i, 2:], keys[i, :2]])
        erased = -np.outer(w, w @ state) / 2
        np.testing.assert_allclose(grown.erase_change(i), erased, rtol=1e-5, atol=1e-6)
        state = state + erased + np.outer(keys[i], values[i])
        np.testing.assert_allclose(grown.sums[i], state, rtol=1e-5, atol=1e-6)
    assert grown.changes.along
    np.testing.assert_allclose(grown.changes.erased_shares, 0.5, rtol=1e-9)
    fixed = state_history(qkv, ac.get("path", along="fixed", strength=1.5), head=1)
    np.testing.assert_allclose(fixed.changes.erased_shares, 1.5, rtol=1e-9)
    assert not state_history(qkv, ac.get("deltanet"), head=1).changes.along


def test_running_sums_have_a_normaliser_and_no_decay_or_erasure():
    grown = state_history(record(), ac.get("linear"), head=0)
    assert grown.changes is None
    assert grown.state_size == grown.sums[0].size + grown.keys[0].size


@pytest.mark.parametrize("variant", matrix_states(), ids=lambda v: v.key)
def test_outputs_equal_those_of_the_full_matrix(variant):
    qkv, attention = record(), ac.get(variant.key)
    grown = state_history(qkv, attention, head=0)
    full = attention.weights(qkv.q.double(), qkv.k.double(), causal=True) @ qkv.v.double()
    np.testing.assert_allclose(grown.outputs, full[0], rtol=1e-9, atol=1e-12)
    assert max(grown.matrix_difference(i) for i in range(20)) < 1e-10
    wrong = replace(grown, outputs=grown.outputs + np.eye(20, 4))
    assert wrong.matrix_difference(2) == pytest.approx(1)


@pytest.mark.parametrize("word", ["linear", "hedgehog", "cosformer~length~9"])
def test_the_added_term_is_the_difference_of_consecutive_sums_without_decay(word):
    grown = state_history(record(), ac.registry.from_word(word), head=0)
    np.testing.assert_allclose(grown.added[1:], np.diff(grown.sums, axis=0), atol=1e-5 * abs(grown.sums).max())


def test_the_softmax_output_and_its_error_are_reported():
    qkv = record()
    grown = state_history(qkv, ac.get("linear"), head=1)
    logits = (qkv.q[1] @ qkv.k[1].T / 2).double().masked_fill(torch.ones(20, 20).triu(1).bool(), -torch.inf)
    wanted = (logits.softmax(-1) @ qkv.v[1].double()).numpy()
    np.testing.assert_allclose(grown.softmax, wanted, rtol=1e-5, atol=1e-6)
    gap = np.linalg.norm(grown.outputs[7] - wanted[7]) / np.linalg.norm(wanted[7])
    assert grown.softmax_error(7) == pytest.approx(gap, rel=1e-4)
    assert gap > 1e-3
    assert grown.softmax_error(0) < 1e-9  # There is only one token.


def test_every_variant_with_a_decoder_is_listed_as_recurrent():
    assert {v.key for v in recurrent()} == {v.key for v in ac.all_variants() if v.decoder}
    found = {v.key for v in matrix_states()}
    assert found >= {"linear", "cosine", "taylor2", "performer", "retention", "cosformer"}
    assert found >= {v.key for v in ac.all_variants() if v.family == "gated"} - {"mesa"}
    others = {v.key for v in recurrent()} - found
    assert others >= {"centred_taylor", "heavy_hitters", "lolcats", "mesa"}, "their states are not one matrix"


def test_the_constant_feature_of_the_second_order_state_counts_tokens():
    grown = state_history(record(), ac.get("taylor2"), head=0)
    assert grown.sums.shape == (20, 1 + 4 + 10, 4)
    np.testing.assert_allclose(grown.keys[:, 0], np.arange(1, 21))  # The constant feature, which is always one.


def test_a_wide_state_is_computed_for_fewer_tokens():
    grown = state_history(record(n=40, d=64), ac.get("taylor2"), head=0)
    assert len(grown.keys) == len(grown.outputs) == len(grown.full) == 2**22 // (2145 * 65)


def test_states_beyond_float32_are_scaled_by_a_unit():
    qkv = record()
    large = replace(qkv, k=60 * qkv.k / qkv.k.abs().max() * 4)
    grown = state_history(large, ac.get("linear", feature_map="exp"), head=0)
    k = large.k[0].double().numpy()
    assert grown.log_unit == pytest.approx(k.max())
    assert np.isfinite(grown.sums).all()
    shifted = np.cumsum(np.exp(k - k.max()), 0)
    np.testing.assert_allclose(grown.keys, shifted, rtol=1e-5, atol=1e-30)


def test_sizes_of_large_states_are_finite():
    qkv = record()
    grown, usual = (state_history(replace(qkv, v=size * qkv.v), ac.get("linear"), head=0) for size in (1e25, 1))
    np.testing.assert_allclose(grown.channel_sizes, 1e25 * usual.channel_sizes, rtol=1e-5)


def test_the_state_after_one_token_equals_the_added_term():
    grown = state_history(record(n=1), ac.get("retention"), head=0)
    np.testing.assert_allclose(grown.sums, grown.added)
