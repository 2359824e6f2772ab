"""Tests of the row that is shown first, and of its summary, on matrices with obvious answers."""

import numpy as np
import pytest
import torch

from attention_core.analysis.matrix.informative_query import (
    KeyWeight,
    heaviest_keys,
    informative_query,
    informative_query_of_record,
    is_word,
    most_changed_keys,
    occurs_once,
)
from attention_core.inputs.record import QKV

ALL = [True] * 4


def matrix(**peaks):
    """Return a uniform matrix of four tokens with some entries replaced, such as ``r1c2=0.9``."""
    found = np.full((4, 4), 0.25)
    for place, weight in peaks.items():
        found[int(place[1]), int(place[3])] = weight
    return found


def test_the_query_with_the_largest_weight_on_another_word_is_chosen():
    assert informative_query(matrix(r1c2=0.6, r3c1=0.9), ALL) == 3
    assert informative_query(matrix(r1c2=0.95, r3c1=0.9), ALL) == 1
    assert informative_query(matrix(), ALL) == 0


def test_a_word_that_occurs_once_is_preferred():
    hard = matrix(r1c2=0.6, r3c1=0.9)
    assert informative_query(hard, ALL, [False, True, False, False]) == 1
    assert informative_query(hard, ALL, [False] * 4) == 3  # All words are repeated.
    # The only rare token is not a word.
    assert informative_query(hard, [True, True, False, True], [False, False, True, False]) == 3
    assert occurs_once(["The", "cat", "the", "Cat", "ran"]) == [False, False, False, False, True]


def test_weights_on_itself_the_first_token_and_punctuation_are_ignored():
    assert informative_query(matrix(r1c1=1.0, r3c2=0.4), ALL) == 3  # The token attends to itself.
    assert informative_query(matrix(r1c0=1.0, r3c2=0.4), ALL) == 3  # The token attends to the first token.
    dotted = [True, True, True, False]
    assert informative_query(matrix(r1c3=1.0, r2c1=0.4), dotted) == 2  # The attended token is not a word.
    assert informative_query(matrix(r3c1=1.0, r2c1=0.4), dotted) == 2  # The attending token is not a word.


def test_causal_weights_are_compared_with_the_uniform_weight_of_their_row():
    causal = np.where(np.tri(4, dtype=bool), 0.1, np.nan)
    causal[2, 1], causal[3, 1] = 0.75, 0.7  # For one row, 1/3 would be uniform, for the other 1/4.
    assert informative_query(causal, ALL) == 3
    causal[2, 1] = 0.8
    assert informative_query(causal, ALL) == 2


@pytest.mark.parametrize("content", [[True], [False] * 4, [True, False, False, False]])
def test_no_query_is_chosen_without_two_words(content):
    n = len(content)
    assert informative_query(np.full((n, n), 1 / n), content) is None


def test_hidden_and_special_tokens_are_not_chosen():
    def chosen_query(weights, words, special, *, shown):
        zeros = torch.zeros(1, len(words), 2)
        found = {
            "groups": tuple(range(len(words))),
            "causal": False,
            "scale": 1.0,
            "origin": "",
            "total_tokens": len(words),
        }
        qkv = QKV(q=zeros, k=zeros, v=zeros, tokens=words, special=special, **found)
        return informative_query_of_record(np.array(weights), qkv, special=shown)

    words, added = ("[", "the", "cat", "The", "dog", "]"), (True, *[False] * 4, True)
    peaks = np.full((6, 6), 0.1)
    # An added token, a word that occurs twice, a word that occurs once.
    peaks[5, 2], peaks[3, 4], peaks[2, 4] = 0.9, 0.8, 0.7
    assert chosen_query(peaks, words, added, shown=True) == 2
    assert chosen_query(peaks[1:5, 1:5], words, added, shown=False) == 1
    alone = ([[0.5, 0.5], [0.1, 0.9]], ("a", "b"), (True, True))
    assert chosen_query(*alone, shown=True) is None
    peaks = np.full((3, 3), 0.1)
    peaks[1, 2] = 0.8
    assert chosen_query(peaks, ("a", "b", "c"), (True,) * 3, shown=False) == 1  # There are no other tokens.


def test_words_of_any_script_are_words_and_punctuation_is_not():
    assert all(map(is_word, ["cat", "7", "钥", "été", "it's"]))
    assert not any(map(is_word, [".", "，", "␣", "·", "—", ""]))


def test_lost_and_gained_weights_are_separate_and_sorted_by_size():
    difference = np.array([0.1, -0.3, np.nan, -0.004, 0.2, -0.5, 0.004])
    lost, gained = most_changed_keys(difference, 2)
    assert lost == (KeyWeight(key=5, weight=-0.5), KeyWeight(key=1, weight=-0.3))
    assert gained == (KeyWeight(key=4, weight=0.2), KeyWeight(key=0, weight=0.1))
    assert most_changed_keys(difference, 1) == (lost[:1], gained[:1])
    assert most_changed_keys(np.array([0.0049, -0.0049, np.nan]), 2) == ((), ())
    assert heaviest_keys(np.array([0.2, np.nan, 0.7, 0.001]), 3) == (
        KeyWeight(key=2, weight=0.7),
        KeyWeight(key=0, weight=0.2),
    )
