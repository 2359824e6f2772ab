"""Finds leaks: replaces each token in turn and measures which outputs change.

A change before the replaced token means that the variant is not causal. The experiment has one task per variant.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from attention_core import registry
from attention_core.analysis.matrix.influence import Influence, influence
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source


@dataclass(frozen=True, kw_only=True)
class LeaksTask:
    """A task that measures how each token influences the outputs of one variant."""

    source: Source
    head: int | None
    word: str


def tasks(source: Source, words: Iterable[str], *, head: int | None) -> tuple[LeaksTask, ...]:
    """Return one task per variant."""
    return tuple(LeaksTask(source=source, head=head, word=word) for word in words)


def run(task: LeaksTask, *, load: Load = load) -> tuple[Influence]:
    """Replace each token in turn and return the influence on the outputs."""
    return (influence(load(task.source, None), registry.from_word(task.word), head=task.head),)
