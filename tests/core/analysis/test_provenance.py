"""Tests of mixed tokens: what mixing hides and reveals, against loops, least squares, and actual changes of a token."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.analysis.masks import provenance

POOLED = ac.get("pooled", stride=4)
MIXING = [POOLED, ac.get("pyramid"), ac.get("linformer", projection="conv"), ac.get("linformer", projection="gaussian")]


def parts(a, n=19, seed=0):
    q, k = torch.randn(2, n, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return {name: part.numpy() for name, part in a.variant.anatomy(q, k, k, a.params, causal=False).items()}


def test_spans_and_effective_tokens_by_hand():
    P = np.array([[0.5, 0.5, 0, 0, 0], [0, 0, 0.25, 0.5, 0.25], [-0.5, 0, 0, 0, 0.5]])
    assert provenance.spans(P) == ((0, 1), (2, 4), (0, 4))
    np.testing.assert_allclose(provenance.effective_tokens(P), [2, 2**1.5, 2])
    np.testing.assert_allclose(provenance.effective_tokens(7 * P), provenance.effective_tokens(P))


@pytest.mark.parametrize("a", MIXING, ids=lambda a: a.word)
def test_shared_mixture_pairs_are_tokens_with_a_common_mixture(a):
    P = parts(a)["provenance"]
    wanted = [[any(row[i] != 0 and row[j] != 0 for row in P) for j in range(19)] for i in range(19)]
    assert np.array_equal(provenance.shared_mixture_pairs(P), wanted)


def softmax_over_started_mixtures(q, keys, first):
    """Return the softmax over the mixtures that have begun, row by row."""
    rows = []
    for i, query in enumerate(q):
        weights = np.where(first <= i, np.exp(query @ keys.T / np.sqrt(len(query))), 0)
        rows.append(weights / weights.sum())
    return np.stack(rows)


@pytest.mark.parametrize("a", MIXING, ids=lambda a: a.word)
def test_a_query_depends_on_exactly_the_later_tokens_in_started_mixtures(a):
    q, k = np.random.default_rng(1).normal(size=(2, 19, 8))
    found = parts(a)
    P, R = found["provenance"], found["right"]
    first = np.array([span[0] for span in provenance.spans(P)])
    left = torch.softmax(torch.from_numpy(q @ (P @ k).T / 8**0.5), -1).numpy()
    before = provenance.renormalise_started_mixtures(left, P)
    np.testing.assert_allclose(before, softmax_over_started_mixtures(q, P @ k, first), atol=1e-12)
    visible = np.triu(provenance.shared_mixture_pairs(P), 1)
    for token in range(1, 19):
        changed = k.copy()
        changed[token] += 3
        after = softmax_over_started_mixtures(q, P @ changed, first)
        moved = np.abs((after - before) @ R).max(-1) > 1e-9
        # If a query attends to one mixture only, all weight is on it for any key, so only the values depend on the
        # token.
        values = np.abs((before @ R)[:, token]) > 0
        assert np.array_equal((moved | values)[:token], visible[:token, token])


def test_a_mixture_without_later_tokens_is_fully_past():
    P = np.array([[0.5, 0.5, 0, 0], [0, 0, -1, 0], [1, 0, 0, 1]])
    wanted = [[False, False, False], [True, False, False], [True, True, False], [True, True, True]]
    assert provenance.fully_past_mixtures(P).tolist() == wanted


@pytest.mark.parametrize("a", MIXING, ids=lambda a: a.word)
def test_hiding_mixtures_with_later_tokens_prevents_any_leak(a):
    found = parts(a)
    ended = provenance.fully_past_mixtures(found["provenance"])
    assert not provenance.future_mass((found["left"] * ended) @ np.abs(found["right"])).any()
    # Each hidden mixture contains a later token, so no mixture is hidden without need.
    for i, r in zip(*np.nonzero(~ended), strict=True):
        assert found["provenance"][r, i + 1 :].any()


def test_future_mass_by_hand():
    A = np.array([[1, 0, 1], [0, -1, 3], [5, 5, 5.0], [0, 0, 0]])[:, :3]
    np.testing.assert_allclose(provenance.future_mass(A), [0.5, 0.75, 0, 0])
    causal = ac.get("softmax").weights(*torch.randn(2, 9, 4, generator=torch.Generator().manual_seed(0)), causal=True)
    assert not provenance.future_mass(causal.numpy()).any()


def test_a_pooled_query_leaks_only_the_later_tokens_of_its_pool():
    found = parts(POOLED, n=16)
    hidden = provenance.renormalise_started_mixtures(found["left"], found["provenance"])
    np.testing.assert_allclose(hidden.sum(-1), 1)
    share = provenance.future_mass(hidden @ found["right"])
    own = hidden[np.arange(16), np.arange(16) // 4]
    np.testing.assert_allclose(share, own * (3 - np.arange(16) % 4) / 4)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 12), m=st.integers(1, 15), rank=st.integers(1, 8), seed=st.integers(0, 999))
def test_the_closest_mixing_is_least_squares_even_for_dependent_mixtures(n, m, rank, seed):
    rng = np.random.default_rng(seed)
    S, R = rng.normal(size=(n, n)), rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    wanted = np.linalg.lstsq(R.T, S.T, rcond=1e-9)[0].T @ R
    np.testing.assert_allclose(provenance.closest_mixing(S, R), wanted, atol=1e-6)
    inside = rng.normal(size=(n, m)) @ R
    np.testing.assert_allclose(provenance.closest_mixing(inside, R), inside, atol=1e-6)


@pytest.mark.parametrize("a", MIXING, ids=lambda a: a.word)
def test_no_variant_has_a_smaller_error_than_the_closest_mixing(a):
    q, k = torch.randn(2, 19, 8, generator=torch.Generator().manual_seed(3))
    R = a.variant.anatomy(q, k, k, a.params, causal=False)["right"].numpy()
    S = ac.get("softmax").weights(q, k).numpy()
    floor = np.linalg.norm(provenance.closest_mixing(S, R) - S)
    assert 0 < floor < np.linalg.norm(a.weights(q, k).numpy() - S)
