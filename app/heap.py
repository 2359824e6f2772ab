"""One heap for all threads of this process, and what is free in it given back."""

import ctypes
import sys
from contextlib import suppress

ARENAS = -8
"""M_ARENA_MAX in glibc's ``malloc.h``."""


def share() -> None:
    """Let threads that are begun from now on allocate where others do. Linux with glibc; elsewhere nothing changes.

    glibc makes up to eight heaps for each processor, and every run of a page is a thread of its own: what one leaves
    free the next does not find, and after some thousand moves a third of a process's own memory is such holes.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(ARENAS, 1)


def give_back() -> None:
    """Return to the system what is free between what is in use; glibc itself returns what is free at the end alone."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
