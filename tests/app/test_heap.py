"""Threads share a heap: what one has freed another takes."""

import subprocess
import sys

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
    """Heaps of a process with eight threads that hold something each."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS.format(first=first)], capture_output=True, text=True, check=True
    )
    return done.stderr.count("Arena ")


def test_threads_of_a_warm_server_share_one_heap():
    assert heaps("") > 1
    assert heaps("from app import heap; heap.share()") == 1
