"""Long tasks step by step: they tell how far they are, and stop between two steps once nobody waits for them.

Who runs a task watches it (``watched``); what runs inside says ``step`` or ``check``, which do nothing elsewhere.
Models check in each of their layers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Told = Callable[[int, int], object]
"""Told how many steps are done, and of how many."""


class StoppedError(Exception):
    """A task was asked to stop, and did."""


@dataclass(frozen=True)
class _Watch:
    told: Told
    stopped: Callable[[], bool]


_watch: ContextVar[_Watch | None] = ContextVar("attention_lab_steps", default=None)


@contextmanager
def watched(told: Told, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Watch what this thread does in the block.

    Args:
        told: told of its steps.
        stopped: whether it shall stop at its next check.
    """
    token = _watch.set(_Watch(told, stopped))
    try:
        yield
    finally:
        _watch.reset(token)


@contextmanager
def unwatched() -> Iterator[None]:
    """Do what others wait for too: whoever watches this thread is neither told of it nor stops it."""
    token = _watch.set(None)
    try:
        yield
    finally:
        _watch.reset(token)


def check() -> None:
    """Stop if that is asked.

    Raises:
        StoppedError: if it is.
    """
    if (watch := _watch.get()) is not None and watch.stopped():
        raise StoppedError


def step(done: int, total: int) -> None:
    """Tell that so many steps of a task are done; errors as of ``check``."""
    check()
    if (watch := _watch.get()) is not None:
        watch.told(done, total)
