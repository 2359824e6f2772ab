"""Associative recall with several queries (MQAR): find the value that was stored under a key earlier in the sequence.

A sequence starts with pairs of a key and a value. Then each key appears once more, at a random position, and the model
must predict its value there. All other positions hold a blank.
"""

import torch

from attention_core.formatting import N_
from attention_core.learning.learning_task import IGNORED, Batch, LearningTask, distinct
from attention_core.variant import Paper

KEYS = 31
VALUES = 30
BLANK = KEYS + VALUES


def sample(generator: torch.Generator, sequences: int, length: int, pairs: int) -> Batch:
    """Return sequences that start with ``pairs`` pairs of a key and a value; the rest is blank.

    Each key appears again at a random position, where its value is the target. Symbols are numbered: first all
    keys, then all values, then the blank.
    """
    keys = distinct(generator, sequences, pairs, KEYS)
    values = KEYS + distinct(generator, sequences, pairs, VALUES)
    inputs = torch.full((sequences, length), BLANK)
    inputs[:, : 2 * pairs] = torch.stack([keys, values], -1).flatten(1)
    targets = torch.full((sequences, length), IGNORED)
    query_positions = 2 * pairs + distinct(generator, sequences, pairs, length - 2 * pairs)
    inputs.scatter_(1, query_positions, keys)
    targets.scatter_(1, query_positions, values)
    return Batch(inputs=inputs, targets=targets)


def label(symbol: int) -> str:
    """Return ``k3`` for the fourth key, ``v3`` for the fourth value, and ``·`` for the blank."""
    return "·" if symbol == BLANK else f"k{symbol}" if symbol < KEYS else f"v{symbol - KEYS}"


TASK = LearningTask(
    key="recall",
    title=N_("Associative recall"),
    summary=N_("The sequence starts with key–value pairs. When a key appears again, the model must predict its value."),
    sample=sample,
    inputs=KEYS + VALUES + 1,
    classes=KEYS + VALUES + 1,
    chance=lambda length, pairs: 1 / pairs,
    length=32,
    shortest=4,
    longest=1024,
    items=4,
    most_items=lambda length: min(VALUES, length // 3),
    label=label,
    shows_answers=True,
    source=Paper(
        "Zoology: Measuring and Improving Recall in Efficient Language Models", 2023, "https://arxiv.org/abs/2312.04927"
    ),
)
