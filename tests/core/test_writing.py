"""Counts, bytes, shares and ranges as they are written; `written` itself is tested where claims speak."""

import pytest

from attention_core.writing import between, formatted, memory, percent, read_off


@pytest.mark.parametrize(
    ("n", "words"), [(7.4, "7"), (68.6, "69"), (1234, "1,200"), (98_765, "99,000"), (99_600, "100,000")]
)
def test_a_count_read_off_a_line_has_two_digits(n, words):
    assert read_off(n) == words


def test_bytes_are_kib_until_they_are_a_mib():
    assert memory(2**20 - 2**7) == "1,023.9 KiB"
    assert memory(2**20) == "1.0 MiB"
    assert memory(3000.5 * 2**20) == "3,000.5 MiB"


def test_a_share_is_per_cent_however_small():
    assert percent(0.256) == "26%"
    assert percent(2.1e-8).replace("\N{NO-BREAK SPACE}", " ") == "2.1 × 10⁻⁶%"


def test_a_negative_number_has_a_minus_sign_and_a_hyphen_only_in_its_exponent():
    assert formatted(-0.5, ".2f") == "−0.50"
    assert formatted(-1e-7, ".1e") == "−1.0e-07"
    assert between(-1, 2.5, ".3g") == "−1 … 2.5"
