"""Settings for all tests: one thread for torch and numpy, no worker processes, and the order of the tests.

On a few busy cores, several threads that wait for each other take many times longer than one. Each test process would
have to start its own worker processes, so tasks run in threads instead. Only the browser tests' server and the tests of
workers start worker processes.
"""

import gc
import os
from itertools import zip_longest
from pathlib import Path

from hypothesis import settings

from attention_core.runtime.devices import use_threads

settings.register_profile("untimed", deadline=None)  # On a busy machine, any example of hypothesis may take long.
settings.load_profile("untimed")
use_threads()
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for processes that tests start, such as servers and notebooks
os.environ["ATTENTION_LAB_WORKERS"] = "0"
gc.disable()  # While pytest collects the tests, garbage collections would take a sixth of the time and free little.


def pytest_collection_modifyitems(items):
    # Browser tests take longest, so they start first. They mostly wait, so a file of other tests follows each file.
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [tests for path, tests in files.items() if "e2e" in path.parts]
    busy = [tests for path, tests in files.items() if "e2e" not in path.parts]
    # The files in this folder start other processes and take long. At the end, the other test processes would be idle.
    busy.sort(key=lambda tests: tests[0].path.parent != Path(__file__).parent)
    items[:] = [item for pair in zip_longest(waiting, busy, fillvalue=()) for tests in pair for item in tests]


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_assertrepr_compare(op, left, right):
    # If a sentence is missing from the long text of a page, the message shows the most similar sentence on the page.
    if op == "in" and hasattr(right, "nearest"):
        return ["a sentence on the page", f"missing: {left}", f"nearest: {right.nearest(left)}"]
    return None
