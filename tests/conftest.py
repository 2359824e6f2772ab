"""Settings for all tests: one thread for torch and numpy, no worker processes, and the order of the tests.

On a few busy cores, threads that wait for each other take many times longer. Each test process would have to start its
own worker processes, so tasks run in threads, unless a test starts workers. The browser tests' server has them.
"""

import gc
import os
from itertools import zip_longest

from hypothesis import settings

from attention_core.runtime.devices import use_threads

settings.register_profile("untimed", deadline=None)  # The time of an example depends only on the machine.
settings.load_profile("untimed")
use_threads()
os.environ["ATTENTION_LAB_WORKERS"] = "0"
gc.disable()  # Each process keeps all collected tests, and collecting garbage meanwhile takes a sixth of the time.


def pytest_collection_modifyitems(items):
    # Browser tests last longest, so they are started first. They wait most, so each alternates with another file.
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [tests for path, tests in files.items() if "e2e" in path.parts]
    busy = [tests for path, tests in files.items() if "e2e" not in path.parts]
    items[:] = [item for pair in zip_longest(waiting, busy, fillvalue=()) for tests in pair for item in tests]


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_assertrepr_compare(op, left, right):
    # A page's text is long, so a sentence that is missing from it is shown next to the most similar one.
    if op == "in" and hasattr(right, "nearest"):
        return ["a sentence on the page", f"missing: {left}", f"nearest: {right.nearest(left)}"]
    return None
