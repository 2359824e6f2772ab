"""Tests of coloured tokens, and of pools drawn as a strip."""

import re

import pytest

from pages.inside.tokens import alternating_colours, coloured_text, strip


def test_rows_of_many_boxes_have_no_borders():
    def row(count):
        return strip([[(i, i) for i in range(count)]], [["a"] * count])

    assert row(40).count("padding:2px 3px;") == 40
    assert row(41).count("padding:2px 0;border-width:1px 0;border-radius:0;") == 41


def test_shades_are_proportional_to_weights():
    text = strip([[(0, 1), (2, 2)], [(0, 2)]], [["a", "b"], ["c"]], [[0.1, 0.2], [0.4]])
    shades = [float(shade) for shade in re.findall(r"rgba\(31,119,180,([\d.]+)\)", text)]
    assert shades == pytest.approx([shades[2] / 4, shades[2] / 2, shades[2]], abs=1e-3)
    assert 0 < shades[2] < 1, "words stay readable on it"


def test_only_input_tokens_have_positions():
    def positions(**sentence):
        text = coloured_text(["a", "b", "c"], [0, 1, 2], notes=["", "", ""], **sentence)
        return re.findall(r'data-token="(\d+)"', text), re.findall(r'data-tokens="(\d+)"', text)

    assert positions() == (["0", "1", "2"], ["3"])
    assert positions(positions=[2, 0, 1]) == (["2", "0", "1"], ["3"])
    assert positions(positions=()) == ([], [])


def test_every_second_run_of_a_group_is_coloured():
    assert alternating_colours([4, 4, 1, 1, 1, 4]) == [0, 0, -1, -1, -1, 0]
    text = coloured_text(["a", "b"], alternating_colours([3, 7]), notes=["", ""])
    assert [("background" in token) for token in text.split("<span")[1:]] == [True, False]


def test_words_in_pictures_are_never_markup():
    text = coloured_text(["<b>", "&"], [0, -1], notes=['"><script>', ""], struck={1}, borders={1})
    assert "<b>" not in text
    assert "<script>" not in text
    assert "&amp;" in text
    assert text.count("line-through") == text.count("border-left") == 1
    assert "<u>" not in strip([[(0, 1), (2, 2)]], [["<u>", '"']], [[0.0, 0.0]])
