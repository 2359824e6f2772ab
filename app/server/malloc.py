"""One heap for all threads of this process, and what is free in it given back."""

import ctypes
import sys
from contextlib import suppress

TRIM, MAPPED, ARENAS = -1, -3, -8
"""M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX in glibc's ``malloc.h``."""
TOP = 64 * 2**20
"""Bytes that may be free at the heap's end before the system gets them back; arrays of up to half of it are made there.

What glibc itself settles on grows with the arrays it has seen. Until then a matrix of 512 tokens is given back once it
is free and its pages taken anew for the next: a new comparison of eight has ten times the page faults.
"""


def share() -> None:
    """Let threads that are begun from now on allocate where others do, and keep what the next array takes up again.

    Linux with glibc; elsewhere nothing changes. To be called before a process begins its first thread: heaps that were
    made until then stay, are dealt out again, and are never given back at their ends.

    glibc makes up to eight heaps for each processor, and every run of a page is a thread of its own: what one leaves
    free the next does not find, and after some thousand moves a third of a process's own memory is such holes.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            for setting, value in {ARENAS: 1, TRIM: TOP, MAPPED: TOP // 2}.items():
                ctypes.CDLL(None).mallopt(setting, value)


def give_back() -> None:
    """Return to the system what is free between what is in use; glibc itself returns what is free at the end alone."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
