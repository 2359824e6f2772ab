"""Tests that the sentences of native sparse attention's story agree with its numbers."""

import numpy as np
import pytest
from stories import head, open_step, said, seen, softmax

import attention_core as ac
from pages.inside.stories import nsa
from pages.inside.stories.nsa import looks_sentence, outline_sentence

FIVE = ac.get("nsa", block=5, blocks=1, window=3)


def test_means_are_there_once_their_last_token_has_come():
    told = [step.sentence for step in nsa.steps(seen(FIVE, causal=True))]
    assert told[0].startswith("24 tokens make 5 blocks with one mean key each;")
    assert "**4** queries have none" in told[0]
    assert "none to look at" not in nsa.steps(seen(FIVE))[0].sentence


def test_queries_without_a_mean_are_told_only_where_there_are_some():
    assert "**1** query has none" in outline_sentence(8, 4, 1)
    assert outline_sentence(8, 1, 0).endswith("what a query gives to that.")
    assert outline_sentence(8, 1, 0).startswith("8 tokens make 1 block with one mean key;")


def test_pairs_are_counted_among_those_that_may_look():
    q, k, _ = (x.numpy() for x in head())
    mean = np.stack([k[start : start + 5].mean(0) for start in range(0, 20, 5)])
    chosen = np.tri(24, dtype=bool) & (np.arange(24)[:, None] // 5 == np.arange(24) // 5)
    for i in range(5, 24):
        best = softmax(q[i] @ mean[: i // 5].T).argmax()
        chosen[i, 5 * best : 5 * best + 5] = True
    ends = np.arange(24) // 5 * 5 + 4
    compressed = ends <= np.arange(24)[:, None]
    near = np.tri(24, dtype=bool) & ~np.tri(24, k=-3, dtype=bool)
    at = open_step(FIVE, 2, causal=True)
    told = said(at, r"a weight to (\d+)%.* full to (\d+)%.* window to (\d+)%.*\*\*([\d.]+)\*\*")
    pairs = [100 * x.sum() / np.tri(24).sum() for x in (compressed, chosen, near)]
    np.testing.assert_allclose(told[:3], pairs, atol=0.51)
    assert told[3] == 1.5


@pytest.mark.parametrize("total", [0.0, 1.25])
def test_a_row_comes_to_what_the_gates_do(total):
    assert f"**{total:.2f}**" in looks_sentence(10, 20, 30, total=total)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("settings", [{"block": 64}, {"block": 1}, {"gate_selected": 0.0}])
def test_every_step_can_be_drawn(settings, causal):
    attention = ac.get("nsa", **settings)
    at = None
    for step in (1, 2, 3):
        at = open_step(attention, step, again=at, causal=causal)
        assert not at.exception
