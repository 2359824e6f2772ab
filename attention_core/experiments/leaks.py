"""Which outputs move when one token is replaced: ``looks.influence`` of several variants, a run of n for each token."""

from collections.abc import Iterable
from dataclasses import dataclass

from attention_core import registry
from attention_core.analysis.matrix.influence import Influence, influence
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source


@dataclass(frozen=True, kw_only=True)
class LeaksTask:
    """One variant on one head.

    Attributes:
        source: where the queries, keys and values come from.
        head: the head looked at; None for all of them.
        word: the variant with its settings.
    """

    source: Source
    head: int | None
    word: str


def tasks(source: Source, words: Iterable[str], *, head: int | None) -> tuple[LeaksTask, ...]:
    """One for each variant's word."""
    return tuple(LeaksTask(source=source, head=head, word=word) for word in words)


def run(task: LeaksTask, *, load: Load = load) -> tuple[Influence]:
    """Replace every token in turn.

    Raises:
        LabError: if the source cannot be read.
    """
    return (influence(load(task.source, None), registry.from_word(task.word), head=task.head),)
