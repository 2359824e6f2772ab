"""The types of tasks and rows (results) that all experiments share, and a function that loads the data of a source."""

from collections.abc import Hashable, Iterable
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


class SeededRow(HeadRow, Protocol):
    """A row about one head with one seed."""

    @property
    def seed(self) -> int | None:
        """The seed of a synthetic source."""


H = TypeVar("H", bound=HeadRow)
S = TypeVar("S", bound=SeededRow)


def group_by_head(rows: Iterable[S]) -> list[list[S]]:
    """Group rows by head and seed, in the order of their first rows."""
    groups: dict[tuple[int, int | None], list[S]] = {}
    for row in rows:
        groups.setdefault((row.head, row.seed), []).append(row)
    return list(groups.values())


def load(source: Source, tokens: int | None = None) -> QKV:
    """Compute the record of a source, without a cache."""
    return source.load(tokens)
