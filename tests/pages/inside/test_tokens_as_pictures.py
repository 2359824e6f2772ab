"""Tests of coloured tokens, and of pools drawn as a strip."""

import re

import pytest

from pages.inside.tokens import alternating, painted, strip


def test_a_row_of_many_boxes_has_no_edges_that_would_push_it_off_a_narrow_screen():
    def row(count):
        return strip([[(i, i) for i in range(count)]], [["a"] * count])

    assert row(40).count("padding:2px 3px;") == 40
    assert row(41).count("padding:2px 0;border-width:1px 0;border-radius:0;") == 41


def test_the_pool_that_weighs_most_is_the_darkest_and_others_are_lighter_in_proportion():
    text = strip([[(0, 1), (2, 2)], [(0, 2)]], [["a", "b"], ["c"]], [[0.1, 0.2], [0.4]])
    shades = [float(shade) for shade in re.findall(r"rgba\(31,119,180,([\d.]+)\)", text)]
    assert shades == pytest.approx([shades[2] / 4, shades[2] / 2, shades[2]], abs=1e-3)
    assert 0 < shades[2] < 1, "words stay readable on it"


def test_tokens_know_their_places_and_other_words_have_none():
    def places(**sentence):
        text = painted(["a", "b", "c"], [0, 1, 2], notes=["", "", ""], **sentence)
        return re.findall(r'data-token="(\d+)"', text), re.findall(r'data-tokens="(\d+)"', text)

    assert places() == (["0", "1", "2"], ["3"])
    assert places(places=[2, 0, 1]) == (["2", "0", "1"], ["3"])
    assert places(places=()) == ([], [])


def test_every_second_run_of_tokens_with_one_owner_is_coloured():
    assert alternating([4, 4, 1, 1, 1, 4]) == [0, 0, -1, -1, -1, 0]
    text = painted(["a", "b"], alternating([3, 7]), notes=["", ""])
    assert [("background" in token) for token in text.split("<span")[1:]] == [True, False]


def test_words_in_pictures_are_never_markup():
    text = painted(["<b>", "&"], [0, -1], notes=['"><script>', ""], faded={1}, borders={1})
    assert "<b>" not in text
    assert "<script>" not in text
    assert "&amp;" in text
    assert text.count("line-through") == text.count("border-left") == 1
    assert "<u>" not in strip([[(0, 1), (2, 2)]], [["<u>", '"']], [[0.0, 0.0]])
