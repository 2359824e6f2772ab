"""Helpers for tests in which several threads run."""

import threading
import time

LIMIT = 30
"""Seconds after which a test with threads fails."""


def until(true, most=LIMIT):
    """Wait until a condition is true, and return the seconds that this has taken."""
    start = time.monotonic()
    while not true():
        assert time.monotonic() < start + most
        time.sleep(0.005)
    return time.monotonic() - start


def started(act, *given):
    """Return a thread that runs a function."""
    thread = threading.Thread(target=act, args=given, daemon=True)
    thread.start()
    return thread


def join(*threads):
    """Wait for the end of these threads."""
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
