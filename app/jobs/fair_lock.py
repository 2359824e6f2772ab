"""A lock for heavy computations, which admits a bounded number of threads at a time and is fair between visitors.

A computation whose time is measured is admitted alone, so that no other work of this process slows it down.
"""

import heapq
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count

BURST_SECONDS = 0.4
"""Seconds that a visitor may use the lock before others go first.

Most interactions use a tenth of these seconds, and a new long text uses all of them.
"""
RECOVERY_RATE = 1 / 30
"""Seconds of a visitor's use that are forgotten per second that passes."""
MAX_DELAY = 3.0
"""Largest number of seconds by which a visitor's high use delays a request, so that even a long run ends."""
MAX_ACCOUNTS = 1000
"""The number of accounts above which accounts without used seconds are deleted."""


class FairSemaphore:
    """A semaphore that admits the waiting thread with the earliest due time, or, if equal, the earliest request.

    Each admitted thread holds one of ``capacity`` places. The due time of a thread is the time of its request, or later
    if its visitor has used the lock for long (``Account.due_time``).

    With ``threading.Semaphore``, a thread that has just released its place can take it again before the waiting threads
    wake up. One visitor's long run of many tasks would then keep all others out until its end.
    """

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._requests = count()
        self._waiting: list[tuple[float, int, threading.Event]] = []
        self._lock = threading.Lock()

    def acquire(self, due_time: float) -> None:
        """Wait for a place, behind all threads with an earlier due time."""
        turn = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            heapq.heappush(self._waiting, (due_time, next(self._requests), turn))
        turn.wait()

    def release(self) -> None:
        """Release a place to the waiting thread with the earliest due time."""
        with self._lock:
            if self._waiting:
                heapq.heappop(self._waiting)[-1].set()
            else:
                self._free += 1

    def has_earlier_request(self, due_time: float) -> bool:
        """Return whether a thread with an earlier due time is waiting."""
        with self._lock:
            return bool(self._waiting) and self._waiting[0][0] < due_time

    @contextmanager
    def acquired(self, due_time: float) -> Iterator[None]:
        """Hold a place within the block."""
        self.acquire(due_time)
        try:
            yield
        finally:
            self.release()


@dataclass
class Account:
    """The use that a visitor has made of the lock.

    Attributes:
        requested_at: the time of the visitor's current request.
        recovered_at: the time at which all of the visitor's use is forgotten; see ``RECOVERY_RATE``.
    """

    requested_at: float
    recovered_at: float

    @property
    def due_time(self) -> float:
        """The due time of the request: its time, or later if the visitor has used more than ``BURST_SECONDS``."""
        return max(self.requested_at, self.recovered_at - BURST_SECONDS / RECOVERY_RATE)

    def charge(self, since: float, now: float) -> None:
        """Count the time from ``since`` to ``now`` as used."""
        self.recovered_at = min(
            max(self.recovered_at, since) + (now - since) / RECOVERY_RATE,
            now + BURST_SECONDS / RECOVERY_RATE + MAX_DELAY,
        )


class FairLock:
    """A reentrant lock that admits a bounded number of threads at a time, fairly between visitors.

    Args:
        capacity: the number of threads admitted.
        clock: returns the time in seconds.
    """

    def __init__(self, capacity: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._clock = capacity, clock
        self._semaphore = FairSemaphore(capacity)
        self._thread = threading.local()
        self._exclusive_lock = threading.Lock()
        self._accounts: dict[Hashable, Account] = {}
        self._lock = threading.Lock()

    @property
    def requested_at(self) -> float | None:
        """The time of this thread's current request, also while ``released`` gives up the place.

        None without a request.
        """
        return getattr(self._thread, "requested_at", None)

    @contextmanager
    def acquired(self, visitor: Hashable = None, requested_at: float | None = None) -> Iterator[None]:
        """Hold a place within the block.

        Args:
            visitor: the visitor whose use is counted; None to count no use.
            requested_at: the time since which the caller waits, perhaps for another lock; None for now.
        """
        if getattr(self._thread, "is_admitted", False):
            yield
            return
        with self._lock:
            now = self._clock()
            account = Account(now, now)
            if visitor is not None:
                account = self._accounts.setdefault(visitor, account)
            account.requested_at = now if requested_at is None else requested_at
            if len(self._accounts) > MAX_ACCOUNTS:
                self._accounts = {key: other for key, other in self._accounts.items() if other.recovered_at > now}
        self._thread.requested_at = account.requested_at
        self._enter(account)
        try:
            yield
        finally:
            self._leave(account)
            self._thread.requested_at = None

    @contextmanager
    def released(self) -> Iterator[None]:
        """Give up the place within the block. Never call this while holding a lock that an admitted thread may need.

        Within ``exclusive``, the places are kept, because nothing else may run during timed work.
        """
        account: Account | None = getattr(self._thread, "account", None)
        if account is None:
            yield
            return
        self._leave(account)
        try:
            yield
        finally:
            # The thread keeps the time of its request. Threads that requested a place during the block therefore wait
            # behind it, unless this visitor has used the lock for long.
            self._enter(account)

    def yield_turn(self) -> None:
        """Let waiting threads with earlier due times go first. Never call this while holding a lock that they may need.

        Once this visitor has used more than ``BURST_SECONDS`` seconds, other visitors' threads are due earlier. Other
        visitors therefore need not wait until a long run ends.
        """
        account: Account | None = getattr(self._thread, "account", None)
        if account is None:
            return
        now = self._clock()
        account.charge(self._thread.since, now)
        self._thread.since = now
        if self._semaphore.has_earlier_request(account.due_time):
            self._leave(account)
            self._enter(account)

    def _enter(self, account: Account) -> None:
        self._semaphore.acquire(account.due_time)
        self._thread.is_admitted, self._thread.account, self._thread.since = True, account, self._clock()

    def _leave(self, account: Account) -> None:
        account.charge(self._thread.since, self._clock())
        self._thread.is_admitted, self._thread.account = False, None
        self._semaphore.release()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold all places within the block, so that no other thread works at the same time. Used for timed work.

        A thread that already holds a place must not call this.
        """
        # Only one caller at a time may acquire all places. Two callers that each hold some places would wait for each
        # other without end.
        with self._exclusive_lock, ExitStack() as stack:
            for _ in range(self._count):
                stack.enter_context(self._semaphore.acquired(self._clock()))
            self._thread.is_admitted = True
            try:
                yield
            finally:
                self._thread.is_admitted = False
