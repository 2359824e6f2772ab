"""Tests that an expensive step is built once, when first shown, without blocking other sessions."""

import threading
from concurrent.futures import ThreadPoolExecutor

from pages.inside.story import Later, Step, later


def step(sentence):
    return Step(formula="", shapes={}, sentence=sentence, draw=lambda key: None)


def test_its_title_is_known_before_and_the_rest_is_told_once():
    told = []

    @later("Much")
    def much(word):
        told.append(word)
        return step(word)

    found = much("work")
    assert found.title == "Much"
    assert not told
    assert found.sentence == "work"
    assert found.formula == ""
    assert told == ["work"]


def test_two_visitors_are_told_theirs_at_once():
    met = threading.Barrier(2, timeout=10)

    def tell():
        met.wait()
        return step("met")

    with ThreadPoolExecutor(2) as visitors:
        assert list(visitors.map(lambda each: each.sentence, [Later("", tell), Later("", tell)])) == ["met", "met"]
