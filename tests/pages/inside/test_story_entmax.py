"""Tests that the sentences of entmax's story agree with its numbers."""

import numpy as np
import pytest
from driver import spoken
from stories import drawn_words, head, open_step, seen

import attention_core as ac
from attention_core.analysis.matrix.thresholds import thresholds
from pages.inside.stories import entmax
from pages.inside.stories.entmax import ALPHAS, kept_sentence, moves_sentence, row_sentence


def test_whom_a_row_keeps_is_told_by_how_many_get_nothing():
    labels = ["a", "b", "c"]
    all_kept = row_sentence("q", np.array([0.2, 0.5, 0.3]), labels)
    assert all_kept == "“q” gives something to each of its 3 keys, most to “b” (50%)."
    some = row_sentence("q", np.array([0.0, 0.4, 0.6]), labels)
    assert some == "“q” gives exactly nothing to 1 of its 3 keys, and most of what it has to “c” (60%)."
    one = row_sentence("q", np.array([1.0, 0.0, 0.0]), labels)
    assert one == "“q” gives all it has to “a”: the other keys, 2 of 3, get exactly nothing."
    assert "each of its 1 keys" in row_sentence("q", np.array([1.0]), ["a"])


def test_rows_that_keep_every_key_are_counted():
    told = kept_sentence(np.array([1, 2, 3]), np.array([1, 4, 4]))
    assert "keeps 2 of the 4 keys it sees, the choosiest 1 and the broadest 3. 1 query keeps every key." in told
    assert kept_sentence(np.array([1, 2]), np.array([3, 3])).endswith("No query keeps every key.")
    assert kept_sentence(np.array([3, 3]), np.array([3, 3])).endswith("2 queries keep every key.")


def test_what_a_higher_alpha_leaves():
    told = moves_sentence((1.05, 2.0), np.array([20.0, 3.0]), 24.0)
    assert "at α = 1.05, nearly softmax, the median query keeps 20 of 24 keys, at α = 2, sparsemax, 3." in told
    told = moves_sentence((1.05, 2.0), np.array([1.0, 1.0]), 1.0)
    assert "from α = 1.05 to 2 the median query still keeps 1 of 1 keys" in told


@pytest.mark.parametrize("causal", [False, True])
def test_thresholds_are_where_rows_sum_to_one_and_rise_with_alpha(causal):
    q, k, _ = head()
    qkv = seen(ac.get("entmax")).qkv
    found = thresholds(qkv, 1, causal, ALPHAS)
    logits = (q @ k.T / 8**0.5).numpy()
    logits = np.where(np.tri(24) > 0, logits, -np.inf) if causal else logits
    for alpha, t, kept in zip(found.alphas, found.thresholds, found.kept, strict=True):
        above = np.maximum((alpha - 1) * (logits - t[:, None]), 0)
        np.testing.assert_allclose((above ** (1 / (alpha - 1))).sum(-1), 1, atol=1e-6)
        assert kept.tolist() == (above > 0).sum(-1).tolist()
    assert (np.diff(found.thresholds, axis=0) > 0).all()
    assert (np.diff(found.kept, axis=0) <= 0).all()
    assert (found.thresholds < logits.max(-1)).all()


def test_the_share_of_zeros_is_that_of_the_pairs_that_may_look():
    told = entmax.steps(seen(ac.get("entmax"), causal=True, parts={"weights": np.eye(24)}))[-1].sentence
    assert "92% of the weights that may be seen are exactly zero" in told  # 276 of 300


def test_the_page_strikes_through_what_the_query_gives_nothing():
    at = open_step(ac.get("entmax", alpha=2.0), 2)
    assert not at.exception
    q, k, _ = head()
    row = ac.get("entmax", alpha=2.0).weights(q, k)[-1]
    zero = int((row == 0).sum())
    assert 0 < zero < 23
    assert f"gives exactly nothing to {zero} of its 24 keys" in spoken(at)
    assert drawn_words(at).count("line-through") == zero
