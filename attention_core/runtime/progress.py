"""Progress and cancellation of long tasks: code inside a task reports steps, and stops between them on request.

The caller of a task wraps it in ``watched``. Code inside the task calls ``step`` or ``check``, which do nothing outside
such a block. Models call ``check`` in each layer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

ProgressCallback = Callable[[int, int], object]
"""A callback that receives the finished and the total number of steps."""


class StoppedError(Exception):
    """The exception that ends a task that was asked to stop."""


@dataclass(frozen=True)
class _Watch:
    on_step: ProgressCallback
    stopped: Callable[[], bool]


_watch: ContextVar[_Watch | None] = ContextVar("attention_lab_steps", default=None)


@contextmanager
def watched(on_step: ProgressCallback, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Watch the steps of this thread within the block.

    Args:
        on_step: receives the finished and total steps.
        stopped: returns whether the thread is to stop at its next check.
    """
    token = _watch.set(_Watch(on_step, stopped))
    try:
        yield
    finally:
        _watch.reset(token)


@contextmanager
def unwatched() -> Iterator[None]:
    """Suspend watching within the block, so that shared work is not reported and not stopped."""
    token = _watch.set(None)
    try:
        yield
    finally:
        _watch.reset(token)


def check() -> None:
    """Raise ``StoppedError`` if the watcher asks this task to stop.

    Raises:
        StoppedError: if the watcher asks for it.
    """
    if (watch := _watch.get()) is not None and watch.stopped():
        raise StoppedError


def step(done: int, total: int) -> None:
    """Report to the watcher how many steps of a task are done; errors are as in ``check``."""
    check()
    if (watch := _watch.get()) is not None:
        watch.on_step(done, total)
