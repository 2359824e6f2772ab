"""The queue for heavy work in this process: so many at once, and alone for what is timed."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class Places:
    """A semaphore that serves in the order of asking.

    Python's own lets a thread that has just given its place back take it again before those who wait have woken up, so
    that one visitor's sweep would keep everybody else out until its end.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def acquire(self, *, again: bool = False) -> None:
        """Wait for a place: behind all others, or before them if one had it before."""
        turn = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            self._waiting.appendleft(turn) if again else self._waiting.append(turn)
        turn.wait()

    def release(self) -> None:
        """Give a place to who has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Gate:
    """Lets a bounded number of threads through at a time; a thread inside may enter again."""

    def __init__(self, places: int) -> None:
        self._count = places
        self._places = Places(places)
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
        """Give one's place back for a while; never while holding a lock that somebody inside may wait for."""
        if not getattr(self._inside, "yes", False):
            yield
            return
        self._places.release()
        self._inside.yes = False
        try:
            yield
        finally:
            self._places.acquire(again=True)
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
