"""Tests of the finding at the top of the Inside page: what a variant saves, and how far it is from softmax."""

import pytest
from stories import seen

import attention_core as ac
from app.words.i18n import _
from pages.inside.headline import (
    cached_numbers,
    cheaper_from,
    difference,
    factor_numbers,
    headline,
    multiply_adds,
    work,
)


@pytest.mark.parametrize(
    ("saving", "words", "share"),
    [
        (
            factor_numbers(32, 7808, 11236),
            "With 32 landmarks, the factors hold 7,808 numbers instead of softmax's 11,236",
            7808 / 11236,
        ),
        (cached_numbers(56, 28160, 43008), "For 56 tokens, the cache holds 28,160 numbers instead of 43,008", 55 / 84),
        (multiply_adds(56, 0.31, 34), "On 56 tokens, this variant needs 31% of softmax's multiply-adds", 0.31),
        (multiply_adds(56, 4.19, None), "On 56 tokens, this variant needs 419% of softmax's multiply-adds", 4.19),
        (
            multiply_adds(56, 4.19, 1235),
            "On 56 tokens, this variant needs 419% of softmax's multiply-adds (fewer than softmax from 1,235 tokens "
            "on)",
            4.19,
        ),
        (multiply_adds(56, 0.9996, 34), "On 56 tokens, this variant needs as many multiply-adds as softmax", 1.0),
    ],
)
def test_what_a_variant_needs_is_compared_with_softmax(saving, words, share):
    assert saving == (words, pytest.approx(share, abs=1e-3))


@pytest.mark.parametrize(
    ("share", "error", "baseline", "expected"),
    [
        (0.5, 0.72, 0.98, "**It is, but the weights differ from softmax's by 72%** (matrix error; equal weights for "
        "all keys: 98%)."),
        (1.0, 0.72, 0.98, "**It is, and the weights differ from softmax's by 72%** (matrix error; equal weights for "
        "all keys: 98%)."),
        (0.5, 0.501, 0.499, "**It is, but the weights differ from softmax's by 50%** (matrix error; equal weights for "
        "all keys: 50%)."),
        (2.0, 0.94, 0.92, "**It is, and the weights differ from softmax's by 94%** (matrix error; equal weights for "
        "all keys are closer: 92%)."),
        (0.5, 0.005, 0.9, "**It is, but the weights differ from softmax's by 0.50%** (matrix error; equal weights for "
        "all keys: 90%)."),
        (0.5, 0.0049, 0.9, "**It is, and the weights differ from softmax's by less than 0.5%.**"),
    ],
)  # fmt: skip
def test_the_difference_is_compared_with_that_of_equal_weights(share, error, baseline, expected):
    assert difference(("It is", share), "softmax", error, baseline) == expected


@pytest.mark.parametrize(
    ("key", "need"),
    [
        # Two factors of 16 landmarks, and three of 32 with the inverse.
        ("landmark", "**With 16 landmarks, the factors hold 768 numbers instead of softmax's 576, and"),
        ("nystrom", "**With 24 landmarks, the factors hold 1,728 numbers instead of softmax's 576, and"),
        # Ranks of 16 for keys and values, which 2 heads of size 8 rebuild; without them, 2 · 16 numbers for each token.
        ("mla", "**For 24 tokens, the cache holds 1,280 numbers instead of 768, and"),
        ("entmax", "**On 24 tokens, this variant needs as many multiply-adds as softmax, and"),
    ],
)
def test_each_kind_of_saving_is_counted(key, need):
    attention = ac.get(key)
    text = headline(seen(attention))
    assert text.startswith(need)
    assert text.endswith(_(attention.variant.summary))


def test_a_variant_is_cheaper_than_softmax_from_some_length_on():
    linear = seen(ac.get("linear"))
    assert cheaper_from(linear) == 10  # 2 n² d for softmax, and 2 n d (d + 1) for linear attention with d = 8
    assert (work(linear, 9), work(linear, 10)) == (1.0, 0.9)
    assert cheaper_from(seen(ac.get("entmax"))) is None
