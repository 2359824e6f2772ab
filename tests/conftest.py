"""Settings shared by all tests: one thread for torch and numpy, and no worker processes.

On few busy cores, threads that wait for each other make a test take many times longer. Each test process would start
its own workers. Tasks therefore run in threads, except in tests that start workers, and in the browser tests' server.
"""

import gc
import os
from itertools import zip_longest

from hypothesis import settings

from attention_core.benchmarking.device import use_threads

settings.register_profile("untimed", deadline=None)  # an example's duration depends on the machine alone
settings.load_profile("untimed")
use_threads()
os.environ["ATTENTION_LAB_WORKERS"] = "0"
gc.disable()  # Each process keeps all tests, so collection while they load costs a sixth of the time.


def pytest_collection_modifyitems(items):
    # Browser tests take and wait longest, so they start first, alternating with the other files.
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [tests for path, tests in files.items() if "e2e" in path.parts]
    busy = [tests for path, tests in files.items() if "e2e" not in path.parts]
    items[:] = [item for pair in zip_longest(waiting, busy, fillvalue=()) for tests in pair for item in tests]


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
