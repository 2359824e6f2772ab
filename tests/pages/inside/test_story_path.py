"""Tests that the sentences of PaTH's story agree with its numbers."""

import numpy as np
import pytest
from driver import board
from stories import figures, head, open_step, said, seen

import attention_core as ac
from pages.inside.stories import path
from pages.inside.stories.path import directions_sentence, left_sentence, taken_sentence


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def along_the_way(k, w, beta, t, j):
    """Return the key of token ``j`` after the steps of all tokens between ``j`` and ``t``."""
    for between in range(j + 1, t):
        k = k - beta * w[between] * (w[between] @ k)
    return k


@pytest.mark.parametrize(
    ("strength", "words"),
    [
        (0.0, "At β = 0 no token takes anything out"),
        (0.5, "takes 50% of what lies along"),
        (1.0, "Each token takes out of all that passes what lies along"),
        (1.5, "takes 150% of what lies along"),
        (2.0, "a reflection"),
    ],
)
def test_what_a_token_does_is_said_of_its_strength(strength, words):
    told = directions_sentence(np.array([-0.5, 0.1]), strength)
    assert words in told
    assert "a cosine of 0.30 on average, without the sign, and of 0.50 at most" in told
    assert "one token only" in directions_sentence(np.array([]), strength)


def test_what_is_taken_is_said_beside_what_a_key_would_have_had():
    assert "would take 30% of its length" in taken_sentence(np.array([-0.4, 0.2]), np.array([0.1, 0.1]))
    assert "It takes 10%: those before it have taken some" in taken_sentence(np.array([0.3]), np.array([-0.1]))
    assert "have left no less" in taken_sentence(np.array([0.3]), np.array([-0.3]))
    assert "have left no less" in taken_sentence(np.array([0.3]), np.array([0.4]))
    assert taken_sentence(np.zeros(3), np.zeros(3)) == "Nothing is taken out of any key."
    assert "one token only" in taken_sentence(np.array([]), np.array([]))


def test_what_is_left_is_a_share_of_what_was_there():
    assert "the way leaves 50%; 25% of them change their sign" in left_sentence(2.0, 4.0, 0.25)
    assert "is zero" in left_sentence(0.0, 0.0, 0.0)


@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("along", ["keys", "turned keys", "fixed"])
def test_what_tokens_take_out_is_what_they_meet_on_the_way(along, strength):
    attention = ac.get("path", along=along, strength=strength)
    _, keys, _ = head()
    keys, w = unit(keys), np.float64(seen(attention).parts["directions"])
    pairs = [(t, j) for t in range(24) for j in range(t)]
    written = [strength * w[t] @ keys[j].numpy() for t, j in pairs]
    taken = [strength * w[t] @ along_the_way(keys[j].numpy(), w, strength, t, j) for t, j in pairs]
    told = path.steps(seen(attention))[1].sentence
    found = figures(told, r"would take ([\d.]+)% of .*takes ([\d.]+)%")
    np.testing.assert_allclose(found, [100 * np.abs(x).mean() for x in (written, taken)], rtol=0.06)


@pytest.mark.parametrize("causal", [True, False])
def test_a_query_reads_what_the_tokens_on_the_way_have_left(causal):
    attention = ac.get("path")
    q, k, _ = (unit(x).numpy() for x in head())
    w = np.float64(seen(attention).parts["directions"])
    pairs = [(i, j) for i in range(24) for j in range(i + 1 if causal else 24)]
    plain = np.array([q[i] @ k[j] for i, j in pairs])
    left = np.array([q[i] @ along_the_way(k[j], w, 1.0, i + 1 if causal else 24, j) for i, j in pairs])
    at = open_step(attention, 3, causal=causal)
    share, turned = said(at, r"the way leaves ([\d.]+)%; (\d+)% of them change")
    assert share == pytest.approx(100 * np.linalg.norm(left) / np.linalg.norm(plain), rel=0.06)
    assert turned == pytest.approx(100 * (plain * left < 0).mean(), abs=0.51)
    assert ("H_i" in at.main.latex[0].value, "H_n" in at.main.latex[0].value) == (causal, not causal)


@pytest.mark.parametrize(("causal", "words"), [(True, "the tokens j + 1 to i"), (False, "all behind it to pass")])
def test_who_stands_on_the_way_is_told(causal, words):
    assert words in path.steps(seen(ac.get("path"), causal=causal))[2].sentence


def shown(at, step):
    return [matrix for _, matrix in board(at, f"inside.path.{step}")[1].values()]


@pytest.mark.parametrize("causal", [True, False])
def test_what_is_drawn_adds_up_and_nobody_passes_before_he_came(causal):
    attention = ac.get("path")
    at = open_step(attention, 1, causal=causal)
    [directions] = shown(at, 1)
    before = np.tri(24, k=-1, dtype=bool)
    w = seen(attention).parts["directions"]
    np.testing.assert_allclose(directions, np.where(before, w @ w.T, np.nan), atol=1e-3)
    at = open_step(attention, 2, again=at, causal=causal)
    for matrix in shown(at, 2):
        np.testing.assert_array_equal(np.isnan(matrix), ~before)
    at = open_step(attention, 3, again=at, causal=causal)
    plain, taken, left = shown(at, 3)
    np.testing.assert_allclose(plain - taken, left, atol=2e-3)
    assert np.nanmax(abs(taken)) > 0.05
    np.testing.assert_array_equal(np.isnan(left), np.triu(np.ones((24, 24), bool), 1) & causal)
