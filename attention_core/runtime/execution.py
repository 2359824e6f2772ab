"""One task of any experiment, run wherever the caller is: the app's process, a worker of its own, another machine."""

import importlib
from functools import cache
from typing import Any

from attention_core.benchmarking.device import use_threads
from attention_core.experiments.task import Load, Task
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.runtime.cache import ByteLRUCache, digest
from attention_core.runtime.progress import unwatched

RECORDS = 2**27
"""Bytes of queries, keys and values that a process which runs tasks keeps: a sweep asks for the same ones again."""


class Records:
    """Sources' records, each read once for all who ask and never changed; those last asked for are kept.

    Args:
        most_bytes: of all that are kept.
    """

    def __init__(self, most_bytes: int = RECORDS) -> None:
        self.kept: ByteLRUCache[QKV] = ByteLRUCache(most_bytes, lambda record: sum(x.nbytes for x in record.tensors))

    def known(self, source: Source, tokens: int | None = None) -> QKV | None:
        """The record of a source if it is kept."""
        return self.kept.known((digest(source), tokens))

    def load(self, source: Source, tokens: int | None = None) -> QKV:
        """The record of a source, as ``source.load``; who asks while another reads it waits for that."""
        # An upload's bytes do not stand in its repr, but their digest does.
        with unwatched():
            return self.kept.get((digest(source), tokens), lambda: source.load(tokens))


def execute(experiment: str, task: Task, load: Load) -> tuple[Any, ...]:
    """Run one task.

    Args:
        experiment: the module's name in ``attention_core.experiments``, or ``"claims"``.
        task: one of the tasks that module's ``tasks`` made.
        load: turns a source into a record.

    Raises:
        LabError: if the task's source cannot be read at this length.
    """
    folder = "attention_core" if experiment == "claims" else "attention_core.experiments"
    return tuple(importlib.import_module(f"{folder}.{experiment}").run(task, load=load))


def execute_here(experiment: str, task: Task) -> tuple[Any, ...]:
    """Run one task in a process that does nothing else; arguments and errors as of ``execute``."""
    return execute(experiment, task, _records().load)


@cache
def _records() -> Records:
    use_threads()
    return Records()
