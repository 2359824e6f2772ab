"""Next character: predict each next character of English text."""

from functools import cache
from importlib import resources

import torch
from torch import Tensor

from attention_core.formatting import N_
from attention_core.learning.learning_task import Batch, LearningTask
from attention_core.variant import Paper

ALPHABET = " ,-.abcdefghijklmnopqrstuvwxyz"
HELD_OUT = 0.1
"""Share of the text, at its end, from which no training sequence is taken."""


@cache
def corpus() -> tuple[Tensor, Tensor]:
    """Return the symbols of the text for training and of the text for evaluation."""
    text = resources.files("attention_core.learning").joinpath("recorded/characters.txt").read_text("utf-8")
    symbols = torch.tensor([ALPHABET.index(character) for character in text.replace("\n", " ")])
    split = round(len(symbols) * (1 - HELD_OUT))
    return symbols[:split], symbols[split:]


def sample(generator: torch.Generator, sequences: int, length: int, _items: int, *, held_out: bool = False) -> Batch:
    """Return random excerpts of the text for training or, if ``held_out``, for evaluation.

    The target of each character is the next one.
    """
    text = corpus()[held_out]
    starts = torch.randint(len(text) - length, (sequences, 1), generator=generator)
    excerpts = text[starts + torch.arange(length + 1)]
    return Batch(inputs=excerpts[:, :-1], targets=excerpts[:, 1:])


def most_frequent(_length: int, _items: int) -> float:
    """Return the accuracy on the held-out text of always predicting the most frequent training character."""
    train, test = corpus()
    return float((test == train.mode().values).float().mean())


TASK = LearningTask(
    key="characters",
    title=N_("Next character"),
    summary=N_("The model must predict each next character of an English text that it was not trained on."),
    sample=sample,
    inputs=len(ALPHABET),
    classes=len(ALPHABET),
    chance=most_frequent,
    length=64,
    shortest=2,
    longest=512,
    training=N_("Each step uses {batch} random excerpts of {length} characters from the text for training."),
    held_out=True,
    label=lambda symbol: ALPHABET[symbol],
    source=Paper("Generating Sequences With Recurrent Neural Networks", 2013, "https://arxiv.org/abs/1308.0850"),
)
