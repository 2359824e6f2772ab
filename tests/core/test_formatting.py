"""Tests of formatted counts, bytes, shares and ranges; the tests of claims cover `format_readable`."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_core.formatting import (
    FormattedFloat,
    at_most,
    between,
    format_interpolated,
    formatted,
    memory,
    number,
    percent,
)

RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


def read_back(words):
    """Return the exact number that a text represents."""
    found = re.fullmatch(r"([−\d.,]+)(?:\u00a0×\u00a010([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(%?)", words)
    mantissa = Fraction(found[1].translate(RAISED).replace(",", ""))
    return mantissa * Fraction(10) ** int((found[2] or "0").translate(RAISED)) / (100 if found[3] else 1)


FINITE = st.floats(min_value=-1e300, max_value=1e300, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-290)


@given(FINITE, st.integers(1, 4))
def test_an_upper_bound_is_never_below_its_number(value, digits):
    assert Fraction(repr(value)) <= read_back(at_most(value, digits))


@given(FINITE, st.sampled_from([".2f", ".3g", ",.0f", ".1%", ".2e", "+.2f"]))
def test_a_formatted_number_reads_back_as_the_same_number(value, form):
    words = formatted(value, form)
    assert not re.search("[-eEn]", words)
    plain = format(value, form)
    expected = Fraction(plain.rstrip("%").replace(",", "")) / (100 if plain.endswith("%") else 1)
    assert read_back(words.removeprefix("+")) == expected
    assert words.translate(RAISED) not in ("-0.00", "+0.00", "-0", "-0.0%")


@pytest.mark.parametrize(
    ("value", "words"), [(1.4e-6, "2 × 10⁻⁶"), (4.4e-7, "5 × 10⁻⁷"), (1e-6, "1 × 10⁻⁶"), (0.0, "0"), (7.3, "8")]
)
def test_upper_bounds_are_rounded_up(value, words):
    assert at_most(value).replace("\N{NO-BREAK SPACE}", " ") == words


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        (math.nan, ".0%", "–"),
        (math.inf, ".2f", "∞"),
        (-math.inf, ".2f", "−∞"),
        (-0.001, ".2f", "0.00"),
        (0.001, "+.2f", "0.00"),
        (1390.0, ".2e", "1.39 × 10³"),
        (123.0, ".2g", "120"),
        (-1234.0, ".2g", "−1,200"),
        (1234567.0, ".3g", "1.23 × 10⁶"),
        (1e45, ".3g", "1 × 10⁴⁵"),
    ],
)
def test_numbers_are_formatted_readably(value, form, words):
    assert formatted(value, form).replace("\N{NO-BREAK SPACE}", " ") == words
    assert format(FormattedFloat(value), form).replace("\N{NO-BREAK SPACE}", " ") == words


def test_a_number_of_45_digits_is_shown_as_a_power_of_ten():
    assert number(123456789.0 * 10**36, 3).replace("\N{NO-BREAK SPACE}", " ") == "1.23 × 10⁴⁴"
    assert f"{FormattedFloat(0.5)}" == "0.5"


@pytest.mark.parametrize(
    ("n", "words"), [(7.4, "7"), (68.6, "69"), (1234, "1,200"), (98_765, "99,000"), (99_600, "100,000")]
)
def test_an_interpolated_count_has_two_significant_digits(n, words):
    assert format_interpolated(n) == words


def test_memory_is_shown_in_the_largest_unit_that_it_fills():
    assert memory(0) == "0 B"
    assert memory(2**10 - 1) == "1023 B"
    assert memory(2**10) == "1.0 KiB"
    assert memory(2**20 - 2**7) == "1,023.9 KiB"
    assert memory(2**20) == "1.0 MiB"
    assert memory(3000.5 * 2**20) == "3,000.5 MiB"


def test_shares_of_any_size_are_shown_in_per_cent():
    assert percent(0.256) == "26%"
    assert percent(2.1e-8).replace("\N{NO-BREAK SPACE}", " ") == "2.1 × 10⁻⁶%"


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.9949, "99%"),
        (0.99609375, "99.6%"),
        (0.9996, "99.96%"),
        (0.99999, "99.999%"),
        (1 - 1e-6, "100%"),  # a rounding error of float32
        (1.0, "100%"),
        (1.003, "100%"),
        (9.996, "1,000%"),
        (math.nan, "–%"),
    ],
)
def test_a_share_below_1_is_100_per_cent_only_up_to_rounding_errors(share, words):
    assert percent(share) == words


def test_a_negative_number_has_a_minus_sign_and_no_hyphen():
    assert formatted(-0.5, ".2f") == "−0.50"
    assert formatted(-1e-7, ".1e") == "−1.0 × 10⁻⁷".replace(" ", "\N{NO-BREAK SPACE}")
    assert formatted(-0.25, ".0%") == "−25%"
    assert between(-1, 2.5, ".3g") == "−1 … 2.5"
