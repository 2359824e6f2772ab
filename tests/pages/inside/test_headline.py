"""Tests of the finding at the top of the Inside page: what a variant saves, and how far it is from softmax."""

from dataclasses import replace

import numpy as np
import pytest
from stories import data

import attention_core as ac
from app.words.i18n import _
from pages.inside.headline import (
    cached_numbers,
    difference,
    error_of_matrix,
    headline,
    multiply_adds,
    needs,
    selection_sentence,
    work,
)
from pages.inside.reference import error_place
from pages.inside.stories import discover


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            cached_numbers(56, 28160, 0, 43008),
            "With n = 56, the cache holds 28,160 numbers (all keys and values: 43,008).",
        ),
        (cached_numbers(1, 0, 28160, 768), "With n = 1, the cache holds 28,160 numbers (all keys and values: 768)."),
        (
            cached_numbers(56, 3584, 24576, 43008),
            "With n = 56, the cache holds 3,584 numbers in latents and 24,576 in shared matrices (all keys and "
            "values: 43,008).",
        ),
        (multiply_adds("Linear", 56, 0.31, 34), "At 56 tokens, Linear needs 31% of softmax's multiply-adds."),
        (multiply_adds("Linear", 56, 4.19, None), "At 56 tokens, Linear needs 419% of softmax's multiply-adds."),
        (
            multiply_adds("Linear", 56, 4.19, 1235),
            "At 56 tokens, Linear needs 419% of softmax's multiply-adds. From 1,235 tokens on, it needs fewer than "
            "softmax.",
        ),
        (multiply_adds("Linear", 56, 0.9996, 34), "At 56 tokens, Linear needs as many multiply-adds as softmax."),
        (multiply_adds("Linear", 1, 1.0, None), "At 1 token, Linear needs as many multiply-adds as softmax."),
        (multiply_adds("Linear", 1, 4.19, None), "At 1 token, Linear needs 419% of softmax's multiply-adds."),
    ],
)
def test_the_work_of_a_variant_is_compared_with_softmax(sentence, expected):
    assert sentence == expected


@pytest.mark.parametrize(
    ("error", "baseline", "total", "expected"),
    [
        (0.72, 0.98, 1, "72% (equal weights: 98%)."),
        (0.72, 0.98, 9, "72% (equal weights: 98%)."),
        (0.005, 0.9, 1, "0.50% (equal weights: 90%)."),
        (0.0049, 0.9, 1, "less than 0.5%."),
    ],
)
def test_the_difference_is_compared_with_that_of_equal_weights(error, baseline, total, expected):
    sentence = f"The matrix error relative to softmax's matrix is {expected}"
    assert difference("softmax", error, baseline, total) == sentence


@pytest.mark.parametrize(("total", "reason"), [(1.99, ""), (0.51, ""), (14.2, "14"), (2.0, "2"), (0.49, "0.49")])
def test_a_matrix_worse_than_equal_weights_is_called_so_with_a_reason_if_its_rows_are_not_normalised(total, reason):
    found = difference("softmax", 0.94, 0.92, total)
    worse = "The matrix is farther from softmax's matrix than equal weights are: the matrix error is 94% (equal"
    cause = f" One reason is that the absolute weights of a row add up to {reason} (median over rows) instead of 1."
    assert found == f"{worse} weights: 92%).{cause if reason else ''}"


@pytest.mark.parametrize(
    ("error", "baseline", "hardly"),
    [(0.95, 1.0, True), (0.94, 1.0, False), (0.501, 0.499, True), (0.504, 0.506, True), (0.52, 0.5, False)],
)
def test_an_error_like_that_of_equal_weights_is_called_hardly_better(error, baseline, hardly):
    sentence = difference("softmax", error, baseline, 1)
    assert sentence.startswith("The weights are hardly better than equal weights: the matrix error rel") == hardly
    assert f" is {error:.0%} (equal weights: {baseline:.0%})." in sentence


def test_rows_without_weight_are_not_counted_as_rows_with_less_weight():
    found = data(ac.get("power_bert", keep=0.5), sharpness=0.5)
    assert sorted(set(found.weights.sum(-1).round(3))) == [0, 1]
    assert error_of_matrix(found).endswith("%).")
    half = replace(found, weights=0.25 * found.weights)
    assert error_of_matrix(half).endswith("weights of a row add up to 0.25 (median over rows) instead of 1.")
    assert error_of_matrix(replace(found, weights=0 * found.weights)).endswith(
        " add up to 0 (median over rows) instead of 1."
    )


@pytest.mark.parametrize(
    ("key", "need"),
    [
        ("landmark", "At 24 tokens, Landmarks needs 133% of softmax's multiply-adds. From 33 tokens on, it needs fewer "
        "than softmax."),
        # Keys and values of 2 heads of size 8 have rank 16 each. Without compression, a token has 2 · 16 numbers.
        ("mla", "With n = 24, the cache holds 768 numbers in latents and 512 in shared matrices (all keys and "
        "values: 768)."),
        ("entmax", "At 24 tokens, Entmax needs as many multiply-adds as softmax."),
    ],
)  # fmt: skip
def test_the_page_says_how_the_variant_works_and_what_it_needs(key, need):
    attention = ac.get(key)
    assert headline(data(attention)) == f"**{_(attention.variant.summary)}**"
    assert needs(data(attention)) == need
    last = discover()[key](data(attention))[-1]
    assert last.findings == error_of_matrix(data(attention))
    assert last.details.endswith(need)


@pytest.mark.parametrize(
    ("count", "others", "causal", "words"),
    [
        (0, 6, False, "Each query attends only to its own block of keys."),
        (2, 0, False, "Each query attends only to its own block of keys."),
        (6, 6, False, "Each query attends to its own block of keys and to all other blocks."),
        (6, 6, True, "Each query attends to its own block of keys and to all earlier blocks."),
        (1, 6, False, "Each query attends to its own block of keys and to the other block with the highest score."),
        (2, 6, False, "Each query attends to its own block of keys and to the 2 other blocks with the highest scores."),
        (1, 6, True, "Each query attends to its own block of keys and to the earlier block with the highest score."),
        (2, 6, True, "Each query attends to its own block of keys and to at most 2 earlier blocks, those with the "
        "highest scores."),
    ],
)  # fmt: skip
def test_the_headline_of_block_selection_says_how_many_blocks_are_selected(count, others, causal, words):
    assert selection_sentence(count, others, causal=causal) == words


def test_the_headline_counts_the_blocks_of_the_input():
    assert headline(data(ac.get("blocks", block=8, blocks=2))).endswith("to all other blocks.**")
    assert "the 2 other blocks" in headline(data(ac.get("blocks", block=7, blocks=2)))


def test_the_work_of_linear_attention_is_relative_to_softmax():
    linear = data(ac.get("linear"))
    assert (work(linear, 9), work(linear, 10)) == (1.0, 0.9)


@pytest.mark.parametrize("causal", [False, True])
def test_the_summary_of_linear_attention_names_the_sum_that_queries_read(causal):
    words = "Each query reads one sum over the keys and values up to its own token" if causal else "All queries read"
    assert headline(data(ac.get("linear"), causal=causal)).startswith(f"**{words}")


def test_the_column_with_most_of_the_error_is_named():
    difference = np.full((6, 6), 0.1)
    assert error_place(difference, "abcdef", "softmax") == "The third matrix is the first one minus softmax's matrix."
    difference[:, 2] = 1
    assert error_place(difference, ["a", "b", "*", "d", "e", "f"], "softmax") == (
        r"95% of the squared error is in one column, the key “\*”."
    )
