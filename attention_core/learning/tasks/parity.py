"""Parity: predict at each position whether the number of ones so far is even or odd."""

import torch

from attention_core.formatting import N_
from attention_core.learning.learning_task import Batch, LearningTask
from attention_core.variant import Paper


def sample(generator: torch.Generator, sequences: int, length: int, _items: int) -> Batch:
    """Return random bits; the target of each bit is the parity of all bits up to it."""
    bits = torch.randint(2, (sequences, length), generator=generator)
    return Batch(inputs=bits, targets=bits.cumsum(-1) % 2)


TASK = LearningTask(
    key="parity",
    title=N_("Parity"),
    summary=N_(
        "The model reads zeros and ones. At each of them, it must predict whether the count of ones so far is odd."
    ),
    sample=sample,
    inputs=2,
    classes=2,
    chance=lambda _length, _items: 1 / 2,
    length=32,
    shortest=2,
    longest=1024,
    label=str,
    source=Paper(
        "Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
        2024,
        "https://arxiv.org/abs/2411.12537",
        authors="Grazzi et al.",
    ),
)
