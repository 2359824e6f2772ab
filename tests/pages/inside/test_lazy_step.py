"""Tests that an expensive step is built once, when first shown, without blocking other sessions."""

import threading
from concurrent.futures import ThreadPoolExecutor

from pages.inside.story import LazyStep, Step, lazy_step


def step(findings):
    return Step(mechanism="", formula="", shapes={}, findings=findings, draw=lambda key: None)


def test_the_title_is_known_and_the_step_is_built_once():
    built = []

    @lazy_step("Much")
    def much(word):
        built.append(word)
        return step(word)

    found = much("work")
    assert found.title == "Much"
    assert not built
    assert found.findings == "work"
    assert found.formula == ""
    assert built == ["work"]


def test_two_sessions_build_their_steps_at_the_same_time():
    met = threading.Barrier(2, timeout=10)

    def build():
        met.wait()
        return step("met")

    with ThreadPoolExecutor(2) as visitors:
        assert list(visitors.map(lambda each: each.findings, [LazyStep("", build), LazyStep("", build)])) == [
            "met",
            "met",
        ]
