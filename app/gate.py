"""The queue for heavy work: so many at once, and alone for what is timed."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class Gate:
    """Lets a bounded number of threads through at a time; a thread inside may enter again."""

    def __init__(self, places: int) -> None:
        self._count = places
        self._places = threading.BoundedSemaphore(places)
        self._inside = threading.local()
        self._sole = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn."""
        if getattr(self._inside, "yes", False):
            yield
            return
        with self._places:
            self._inside.yes = True
            try:
                yield
            finally:
                self._inside.yes = False

    @contextmanager
    def away(self) -> Iterator[None]:
        """Give one's place back for a while, to wait for what a thread at the gate may be holding."""
        if not getattr(self._inside, "yes", False):
            yield
            return
        self._places.release()
        self._inside.yes = False
        try:
            yield
        finally:
            self._places.acquire()
            self._inside.yes = True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other thread is inside, and keep them out: for what is timed.

        A thread inside must not ask; one that is alone counts as inside.
        """
        with self._sole, ExitStack() as taken:  # one at a time, as two that took places in turn would wait for ever
            for _ in range(self._count):
                taken.enter_context(self._places)
            self._inside.yes = True
            try:
                yield
            finally:
                self._inside.yes = False
