"""Induction: continue a sequence that repeats itself, by finding what followed the same symbol before."""

import torch

from attention_core.formatting import N_
from attention_core.learning.learning_task import IGNORED, Batch, LearningTask, distinct
from attention_core.variant import Paper

SYMBOLS = 64


def sample(generator: torch.Generator, sequences: int, length: int, _items: int) -> Batch:
    """Return sequences of different symbols, repeated once.

    In the second half, the target of each symbol but the last is the next symbol.
    """
    half = length // 2
    first = distinct(generator, sequences, half, SYMBOLS)
    inputs = torch.cat([first, first], 1)
    targets = torch.full((sequences, 2 * half), IGNORED)
    targets[:, half:-1] = inputs[:, half + 1 :]
    return Batch(inputs=inputs, targets=targets)


TASK = LearningTask(
    key="induction",
    title=N_("Induction"),
    summary=N_("A random sequence is repeated. In the repetition, the model must predict each next symbol."),
    sample=sample,
    inputs=SYMBOLS,
    classes=SYMBOLS,
    chance=lambda length, _items: 1 / (length // 2),
    length=32,
    shortest=4,
    longest=2 * SYMBOLS,
    label=str,
    shows_answers=True,
    source=Paper(
        "In-context Learning and Induction Heads", 2022, "https://arxiv.org/abs/2209.11895", authors="Olsson et al."
    ),
)
