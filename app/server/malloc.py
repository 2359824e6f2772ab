"""Settings of glibc's malloc: one heap for all threads, and free memory returned to the system."""

import ctypes
import sys
from contextlib import suppress

TRIM, MMAP, ARENAS = -1, -3, -8
"""The constants M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX of glibc's ``malloc.h``."""
TRIM_BYTES = 64 * 2**20
"""Bytes that may stay free at the end of the heap before glibc returns them to the system.

Arrays up to half this size are allocated on the heap. glibc's own thresholds start lower and grow with the
arrays it has seen. At first glibc returns each freed matrix of 512 tokens to the system, and maps memory again
for the next one. A new comparison of eight variants then has ten times the page faults.
"""


def share_heap() -> None:
    """Make all threads started from now on share one heap, and keep freed memory for the next array.

    Works on Linux with glibc and does nothing elsewhere. Call it before a process starts its first thread: heaps
    created earlier stay in use and are never trimmed.

    glibc creates up to eight heaps per processor, and every run of a page is a new thread. A thread cannot use the
    memory freed in another heap: after some thousand reruns, a third of a process's own memory is such unused gaps.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # Only glibc has this function; other C libraries are left unchanged.
            for setting, value in {ARENAS: 1, TRIM: TRIM_BYTES, MMAP: TRIM_BYTES // 2}.items():
                ctypes.CDLL(None).mallopt(setting, value)


def trim_heap() -> None:
    """Return free memory between allocations to the system; glibc by itself only trims the end of the heap."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
