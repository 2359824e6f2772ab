"""Tests that the text on screen has no fault that the checks in ``screen_english.py`` find."""

import pytest
from screen_english import LONGEST, faults, messages


def test_the_text_on_screen_is_plain():
    found = list(messages())
    assert len(found) > 2000
    assert not [f"{place}:{line}: {fault}" for place, line, text in found for fault in faults(place, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Softmax attends to every key.", None),
        ("The query looks at every key.", "'looks': write attends to"),
        ("What the cache holds is small.", "opens with 'What'"),
        ("What happens to a model when you replace its attention?", None),
        ("An error of 5%. Whoever pools leaks.", "opens with 'Whoever'"),
        ("Its output is off by {error:.0%}.", "'is off': write error"),
        ("The value of `beside` is kept.", None),
        ("word " * (LONGEST + 1), "a sentence of more than"),
    ],
)
def test_faults_are_found(text, expected):
    found = list(faults("pages/error/words.py", text))
    assert (expected is None) == (not found)
    assert expected is None or any(expected in fault for fault in found)


def test_only_home_may_say_that_a_word_looks_at_another():
    assert not list(faults("pages/home/page.py", "The word looks at the animal."))
    assert list(faults("pages/masks/page.py", "The word looks at the animal."))
