"""Tests that words a visitor typed cannot reorder the sentence around them, and that hidden characters are shown."""

import pytest

from app.words.isolation import isolate

START, END = "\u2068", "\u2069"


@pytest.mark.parametrize("words", ["שלום", "كلمة", "٣", "a שלום", "\u200fa"])
def test_right_to_left_words_are_isolated_once(words):
    assert isolate(words) == f"{START}{words}{END}" == isolate(isolate(words))


@pytest.mark.parametrize("words", ["", "cat", "“猫” $&", "naïve − 7 %", "two\nlines\tand"])
def test_other_words_are_unchanged(words):
    assert isolate(words) == words


def test_a_sentence_with_isolated_words_is_unchanged():
    sentence = f"“{isolate('שלום')}” 7 %, “{isolate('כן ' + isolate('לא'))}” 3 %"
    assert isolate(sentence) == sentence


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a\u202eb", "ab"),
        ("\u202aa\u202c\u2066b\u2069", "ab"),
        ("a\x01\x7f", "a␁␡"),
        ("שלום\u2069 7", f"{START}שלום 7{END}"),
        ("שלום\u2068 7", f"{START}שלום{START} 7{END}{END}"),
    ],
)
def test_control_characters_neither_hide_nor_reorder_what_follows(words, shown):
    assert isolate(words) == shown == isolate(shown)
