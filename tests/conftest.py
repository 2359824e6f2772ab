"""One thread for torch and for numpy: on few busy cores, threads that wait for each other take many times longer.

And no worker processes, which would be begun anew by each process that tests: tasks run in threads, but where a test
begins workers of its own. The browser tests' server has them.
"""

import gc
import os
from itertools import zip_longest

from hypothesis import settings

from attention_core.benchmarking.device import use_threads

settings.register_profile("untimed", deadline=None)  # how long an example takes says something of the machine alone
settings.load_profile("untimed")
use_threads()
os.environ["ATTENTION_LAB_WORKERS"] = "0"
gc.disable()  # while tests are collected, of which each process keeps every one: a sixth of the time, in all of them


def pytest_collection_modifyitems(items):
    # The browser's tests last longest, so they are begun first; and wait most, so beside each file there is another.
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [tests for path, tests in files.items() if "e2e" in path.parts]
    busy = [tests for path, tests in files.items() if "e2e" not in path.parts]
    items[:] = [item for pair in zip_longest(waiting, busy, fillvalue=()) for tests in pair for item in tests]


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
