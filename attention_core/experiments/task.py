"""What experiments have in common: tasks in, rows out."""

from collections.abc import Hashable
from typing import Protocol, TypeVar

from attention_core.inputs.record import QKV
from attention_core.inputs.source import Load as Load
from attention_core.inputs.source import Source

Task = Hashable
"""One independent piece of an experiment: a frozen dataclass of plain values, words of variants and a source."""


class OfHead(Protocol):
    """A row about one head."""

    @property
    def head(self) -> int:
        """The head."""


class Seeded(OfHead, Protocol):
    """A row about one head under one seed."""

    @property
    def seed(self) -> int | None:
        """The seed of a synthetic source."""


H = TypeVar("H", bound=OfHead)
S = TypeVar("S", bound=Seeded)


def load(source: Source, tokens: int | None = None) -> QKV:
    """The record of a source, computed anew."""
    return source.load(tokens)
