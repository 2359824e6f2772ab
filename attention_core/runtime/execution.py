"""Runs one task of any experiment, in the app's process, in a worker or on another machine."""

import importlib
from functools import cache
from typing import Any

from attention_core.experiments.task import Load, Task
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.runtime.cache import ByteLRUCache, digest
from attention_core.runtime.devices import use_threads
from attention_core.runtime.progress import unwatched

RECORD_BYTES = 2**27
"""Bytes of queries, keys and values that a process caches while it runs tasks: the tasks of a run share records."""


class Records:
    """An LRU cache of the records (queries, keys and values) of sources, which reads each record once.

    Args:
        most_bytes: the largest total size of the records.
    """

    def __init__(self, most_bytes: int = RECORD_BYTES) -> None:
        self.cache: ByteLRUCache[QKV] = ByteLRUCache(most_bytes, lambda record: sum(x.nbytes for x in record.tensors))

    def known(self, source: Source, tokens: int | None = None) -> QKV | None:
        """Return the record of a source if it is cached, or None; ``tokens`` is as in ``source.load``."""
        return self.cache.known((digest(source), tokens))

    def load(self, source: Source, tokens: int | None = None) -> QKV:
        """Return the record of a source, as ``source.load``. Concurrent callers wait for one read."""
        # The cache key hashes the repr of the source. This is cheap for an upload too, since its repr contains a digest
        # instead of the bytes.
        with unwatched():
            return self.cache.get((digest(source), tokens), lambda: source.load(tokens))


def execute(experiment: str, task: Task, load: Load) -> tuple[Any, ...]:
    """Run one task and return its rows.

    Args:
        experiment: the module's name in ``attention_core.experiments``, or ``"claims"``.
        task: a task made by that module's ``tasks``.
        load: turns a source into a record.

    Raises:
        LabError: if the task's source cannot be read at this length.
    """
    folder = "attention_core" if experiment == "claims" else "attention_core.experiments"
    return tuple(importlib.import_module(f"{folder}.{experiment}").run(task, load=load))


def execute_here(experiment: str, task: Task) -> tuple[Any, ...]:
    """Run one task in a worker process, with the process's own cache of records; see ``execute``."""
    return execute(experiment, task, _records().load)


@cache
def _records() -> Records:
    use_threads()
    return Records()
