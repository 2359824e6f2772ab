"""Tests of the settings of glibc's malloc: threads share one heap, and freed memory returns to the system."""

import subprocess
import sys

import pytest

THREADS = """
import ctypes, threading
{first}
held, free = threading.Barrier(9), threading.Event()
def hold():
    kept = [bytearray(300) for _ in range(1000)]
    held.wait()
    free.wait()
threads = [threading.Thread(target=hold) for _ in range(8)]
for thread in threads: thread.start()
held.wait()
ctypes.CDLL(None).malloc_stats()
free.set()
"""


def heaps(first):
    """Return the number of heaps in a process with eight threads that each hold memory."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS.format(first=first)], capture_output=True, text=True, check=True
    )
    return done.stderr.count("Arena ")


ONE_PROCESS = """
import asyncio
from app import streamlit_app
async def start():
    async with streamlit_app.lifespan(streamlit_app.app):
        pass
asyncio.run(start())
"""
OF_SEVERAL = "from app.server import replicas; replicas._warm_up()"


def test_threads_have_their_own_heaps_by_default_and_can_share_one():
    assert heaps("") > 1
    assert heaps("from app.server import malloc; malloc.share_heap()") == 1


@pytest.mark.parametrize("warm", [ONE_PROCESS, OF_SEVERAL], ids=["one process", "of several"])
def test_a_warm_server_has_one_heap(warm):
    assert heaps(warm) == 1


RESIDENT = """
import gc, re
from pathlib import Path
{first}
def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
"""
HOLES = (
    RESIDENT
    + """
kept = [bytearray(b"x" * 60_000) for _ in range(4000)]
between, kept = kept[::2], kept[1::2]
del between
before = resident()
{last}
print(before - resident(), len(kept))
"""
)
TOP = (
    RESIDENT
    + """
before = resident()
pieces = [bytearray(b"x" * 100_000) for _ in range(100)]
del pieces
print(resident() - before)
"""
)


def mib_returned(first, last="gc.collect()"):
    """Return the MiB that a collection gives back when every other one of 4000 blocks of 60 kB is free."""
    done = subprocess.run(
        [sys.executable, "-c", HOLES.format(first=first, last=last)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[0])


def test_a_full_collection_returns_free_memory_between_used_blocks():
    assert mib_returned("") < 1
    assert mib_returned("from app.server import gc_tuning; gc_tuning.freeze_objects('test')") > 90


def test_free_memory_is_also_returned_after_other_collections_in_intervals():
    begin = "from app.server import gc_tuning; gc_tuning.freeze_objects('test')"
    long_ago = f"{begin}; gc_tuning._last_trim -= 2 * gc_tuning.TRIM_INTERVAL"
    assert mib_returned(long_ago, "gc.collect(0)") < 1
    assert mib_returned(long_ago, "gc.collect(1)") > 90
    assert mib_returned(f"{begin}; gc_tuning.TRIM_INTERVAL = 600", "gc.collect(1)") < 1


def remaining_mib(first):
    """Return the MiB that a process still holds after it has freed 100 blocks of 100 kB."""
    done = subprocess.run([sys.executable, "-c", TOP.format(first=first)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_free_memory_at_the_end_of_the_heap_is_reused():
    assert remaining_mib("") < 1
    assert remaining_mib("from app.server import malloc; malloc.share_heap()") > 9
