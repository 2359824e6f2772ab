"""Shared parts of the experiments: the type of a task, the type of a row (result) about one head, and two functions.

``group_by_head`` groups rows by head and seed. ``load`` returns the queries, keys and values of an input source.
"""

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Protocol, TypeVar

from attention_core.inputs.record import QKV
from attention_core.inputs.source import Load as Load
from attention_core.inputs.source import Source

Task = Hashable
"""One independent part of an experiment: a frozen dataclass of plain values, words of variants and a source."""


class HeadRow(Protocol):
    """A row about one head."""

    @property
    def head(self) -> int:
        """The index of the head."""


H = TypeVar("H", bound=HeadRow)
R = TypeVar("R")


def group_by_head(rows: Iterable[R]) -> list[list[R]]:
    """Group rows, which have a head and a seed, by both, in the order of their first rows."""
    groups: dict[tuple[int, int | None], list[R]] = {}
    for row in rows:
        groups.setdefault(attrgetter("head", "seed")(row), []).append(row)
    return list(groups.values())


def load(source: Source, tokens: int | None = None) -> QKV:
    """Compute the record of a source, without a cache."""
    return source.load(tokens)
