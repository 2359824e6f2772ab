"""Tests of the decorator for objects that exist once per process: concurrent calls get the same object."""

import threading
import time

import pytest
from threads import join, started

from app.jobs.singleton import cached_singleton


def test_concurrent_calls_get_the_same_object_made_once():
    made, found, begin = [], [], threading.Barrier(8)

    @cached_singleton
    def slow():
        made.append(1)
        time.sleep(0.05)
        return object()

    def ask():
        begin.wait(5)
        found.append(slow())

    join(*(started(ask) for _ in range(8)))
    assert len(made) == len(set(map(id, found))) == 1
    assert len(found) == 8


def test_each_argument_has_one_object_and_errors_are_not_cached():
    asked = []

    @cached_singleton
    def square(x):
        asked.append(x)
        if x < 0:
            raise ValueError(x)
        return x * x

    assert [square(2), square(3), square(2)] == [4, 9, 4]
    for _ in range(2):
        with pytest.raises(ValueError, match="-1"):
            square(-1)
    assert asked == [2, 3, -1, -1]
    with pytest.raises(TypeError, match="keyword"):
        square(x=2)
