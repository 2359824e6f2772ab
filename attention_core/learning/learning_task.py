"""A class for a learning task: a generator of sequences and targets, the accuracy of guessing, and size limits."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.errors import InputError
from attention_core.formatting import N_
from attention_core.variant import Paper

IGNORED = -100
"""Target of a position at which nothing is predicted; ``torch.nn.functional.cross_entropy`` skips it."""


class Batch(CompactRepr):
    """Some sequences of a task.

    Attributes:
        inputs: symbols, ``[B, n]`` int64; or vectors, ``[B, n, features]`` float32.
        targets: the class that the model must predict at each position, ``[B, n]`` int64, or ``IGNORED``.
    """

    inputs: Tensor
    targets: Tensor


@dataclass(frozen=True, kw_only=True)
class LearningTask:
    """A task on which tiny models are trained.

    Attributes:
        key: name in code, links and on the command line.
        title: name on screen.
        summary: one sentence that says what the model must do.
        sample: ``(generator, sequences, length, items) -> Batch``. All randomness is from ``generator``. A task with
            a fixed set of examples also takes ``held_out``, which selects examples that training never uses.
        inputs: number of symbols, or of features if ``vectors``.
        classes: number of classes that the model chooses from.
        chance: ``(length, items) -> accuracy`` of guessing one of the possible answers.
        length: tokens per sequence by default.
        shortest: smallest length. If ``varied``, each training batch has a random length from ``shortest`` to
            the run's length.
        longest: largest length.
        varied: whether training uses several lengths.
        items: how many pairs or symbols must be remembered, by default; 0 if the task has no such number.
        most_items: ``(length) -> items``, the largest number of items at a length.
        training: one sentence about the sequences of a training step, with the placeholders ``batch``, ``length`` and
            ``examples``.
        held_out: whether the examples are a fixed set, of which a part is kept for evaluation.
        examples: number of examples for training, if it is in the sentence ``training``.
        shows_answers: whether each answer is a symbol of the sequence, which the model must find.
        vectors: whether the inputs are vectors instead of symbols.
        causal: whether the attention is causal.
        positions: position encoding of a model by default, one of ``model.POSITIONS``.
        label: ``(symbol) -> text``, the name of a symbol on the axes of a matrix; None for vectors.
        source: the publication that uses the task.
    """

    key: str
    title: str
    summary: str
    sample: Callable[..., Batch]
    inputs: int
    classes: int
    chance: Callable[[int, int], float]
    length: int
    shortest: int
    longest: int
    varied: bool = False
    items: int = 0
    most_items: Callable[[int], int] = lambda length: 0
    training: str = N_("It trains on {batch} new sequences of {length} tokens at each step.")
    held_out: bool = False
    examples: int = 0
    shows_answers: bool = False
    vectors: bool = False
    causal: bool = True
    positions: str = "none"
    label: Callable[[int], str] | None = None
    source: Paper

    def names(self, inputs: Tensor) -> list[str]:
        """Return the names of the symbols ``[n]`` of one sequence.

        For vectors ``[n, features]``, return their positions.
        """
        return [str(i) for i in range(len(inputs))] if self.label is None else [*map(self.label, inputs.tolist())]

    def check(self, length: int, items: int) -> None:
        """Check that the task exists at a length and with a number of items.

        Raises:
            InputError: if it does not.
        """
        if not self.shortest <= length <= self.longest:
            raise InputError(
                "{task} has no sequences of {length} tokens. Choose a length from {low} to {high}.",
                task=self.title,
                length=length,
                low=self.shortest,
                high=self.longest,
            )
        most_items = self.most_items(length)
        if not min(1, most_items) <= items <= most_items:
            raise InputError(
                "{task} with {length} tokens cannot have {items} pairs or symbols to remember. Choose a number from "
                "{low} to {high}.",
                task=self.title,
                length=length,
                items=items,
                low=min(1, most_items),
                high=most_items,
            )


def distinct(generator: torch.Generator, rows: int, count: int, high: int) -> Tensor:
    """Return ``count`` different numbers below ``high`` in each row, in random order, ``[rows, count]`` int64."""
    return torch.rand(rows, high, generator=generator, dtype=torch.float32).argsort(-1)[:, :count]
