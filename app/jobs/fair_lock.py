"""The queue for heavy work in this process: so many at once, fair between visitors, and alone for what is timed."""

import heapq
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count

AT_ONCE = 0.4
"""Seconds that a visitor may be inside before others go first: most moves take a tenth of that, a new long text all."""
SHARE = 1 / 30
"""Of the time that passes, what he gains of that again."""
LATE = 3.0
"""Seconds by which others go first at most, so that a sweep ends too."""
MANY = 1000
"""Visitors beyond which those are forgotten who have gained again what they took."""


class Places:
    """A semaphore that serves who is due first, and of those due at once who asked first.

    Python's own lets a thread that has just given its place back take it again before those who wait have woken up, so
    that one visitor's sweep would keep everybody else out until its end.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._asked = count()
        self._waiting: list[tuple[float, int, threading.Event]] = []
        self._lock = threading.Lock()

    def acquire(self, due: float) -> None:
        """Wait for a place: behind all who are due before."""
        turn = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            heapq.heappush(self._waiting, (due, next(self._asked), turn))
        turn.wait()

    def release(self) -> None:
        """Give a place to who is due first."""
        with self._lock:
            if self._waiting:
                heapq.heappop(self._waiting)[-1].set()
            else:
                self._free += 1

    def wanted(self, due: float) -> bool:
        """Whether somebody waits who is due before."""
        with self._lock:
            return bool(self._waiting) and self._waiting[0][0] < due

    @contextmanager
    def taken(self, due: float) -> Iterator[None]:
        """A place, for a while."""
        self.acquire(due)
        try:
            yield
        finally:
            self.release()


@dataclass
class Account:
    """What a visitor has taken.

    Attributes:
        asked: when the turn was asked for that he has or waits for.
        spent: the time by which what he has taken will be gained again.
    """

    asked: float
    spent: float

    @property
    def due(self) -> float:
        """When it is his turn: as he asked, or later if he has taken more than he may at once."""
        return max(self.asked, self.spent - AT_ONCE / SHARE)

    def take(self, since: float, now: float) -> None:
        """He was inside."""
        self.spent = min(max(self.spent, since) + (now - since) / SHARE, now + AT_ONCE / SHARE + LATE)


class FairLock:
    """Lets a bounded number of threads through at a time; a thread inside may enter again.

    Args:
        places: how many.
        clock: tells the time, in seconds.
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._clock = places, clock
        self._places = Places(places)
        self._inside = threading.local()
        self._sole = threading.Lock()
        self._accounts: dict[Hashable, Account] = {}
        self._lock = threading.Lock()

    @property
    def asked(self) -> float | None:
        """When this thread asked for the turn that it has, or has given back for a while; None where it has none."""
        return getattr(self._inside, "asked", None)

    @contextmanager
    def turn(self, visitor: Hashable = None, asked: float | None = None) -> Iterator[None]:
        """Wait for a turn.

        Args:
            visitor: whose; None for one who is nobody before and after.
            asked: since when he waits, by the clock, elsewhere it may be; None for now.
        """
        if getattr(self._inside, "yes", False):
            yield
            return
        with self._lock:
            now = self._clock()
            account = Account(now, now)
            if visitor is not None:
                account = self._accounts.setdefault(visitor, account)
            account.asked = now if asked is None else asked
            if len(self._accounts) > MANY:
                self._accounts = {each: kept for each, kept in self._accounts.items() if kept.spent > now}
        self._inside.asked = account.asked
        self._enter(account)
        try:
            yield
        finally:
            self._leave(account)
            self._inside.asked = None

    @contextmanager
    def away(self) -> Iterator[None]:
        """Give one's place back for a while; never while holding a lock that somebody inside may wait for."""
        if not getattr(self._inside, "yes", False):
            yield
            return
        account: Account = self._inside.account
        self._leave(account)
        try:
            yield
        finally:
            self._enter(account)  # as if he had waited all the time

    def give_way(self) -> None:
        """Let those go first who wait and are due before; never while holding a lock that one of them may wait for.

        They are where the visitor inside has taken more than he may at once: a sweep's page is drawn in the gaps
        between others' moves, and keeps no move waiting until its end.
        """
        account: Account | None = getattr(self._inside, "account", None)
        if account is None:
            return
        now = self._clock()
        account.take(self._inside.since, now)
        self._inside.since = now
        if self._places.wanted(account.due):
            self._leave(account)
            self._enter(account)

    def _enter(self, account: Account) -> None:
        self._places.acquire(account.due)
        self._inside.yes, self._inside.account, self._inside.since = True, account, self._clock()

    def _leave(self, account: Account) -> None:
        account.take(self._inside.since, self._clock())
        self._inside.yes, self._inside.account = False, None
        self._places.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other thread is inside, and keep them out: for what is timed.

        A thread inside must not ask; one that is alone counts as inside.
        """
        with self._sole, ExitStack() as taken:  # one at a time, as two that took places in turn would wait for ever
            for _ in range(self._count):
                taken.enter_context(self._places.taken(self._clock()))
            self._inside.yes = True
            try:
                yield
            finally:
                self._inside.yes = False
