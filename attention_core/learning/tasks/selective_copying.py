"""Selective copying: repeat, in order, the symbols that are scattered among blanks."""

import torch

from attention_core.formatting import N_
from attention_core.learning.learning_task import IGNORED, Batch, LearningTask, distinct
from attention_core.variant import Paper

SYMBOLS = 16
BLANK, MARK = SYMBOLS, SYMBOLS + 1


def sample(generator: torch.Generator, sequences: int, length: int, items: int) -> Batch:
    """Return sequences of symbols among blanks, followed by one mark for each symbol to repeat."""
    symbols = torch.randint(SYMBOLS, (sequences, items), generator=generator)
    positions = distinct(generator, sequences, items, length - items).sort(-1).values
    inputs = torch.full((sequences, length), BLANK)
    inputs.scatter_(1, positions, symbols)
    inputs[:, length - items :] = MARK
    targets = torch.full((sequences, length), IGNORED)
    targets[:, length - items :] = symbols
    return Batch(inputs=inputs, targets=targets)


def label(symbol: int) -> str:
    """Return how a symbol is shown: a capital letter, ``·`` for a blank, or ``?`` for a mark that asks for a symbol."""
    return {BLANK: "·", MARK: "?"}.get(symbol, chr(ord("A") + symbol))


TASK = LearningTask(
    key="copying",
    title=N_("Selective copying"),
    summary=N_("Symbols are scattered among blanks. At the end, the model must repeat the symbols in order."),
    sample=sample,
    inputs=SYMBOLS + 2,
    classes=SYMBOLS,
    chance=lambda length, items: 1 / SYMBOLS,
    length=32,
    shortest=4,
    longest=1024,
    items=6,
    most_items=lambda length: length // 2,
    positions="learned",
    label=label,
    shows_answers=True,
    source=Paper(
        "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023, "https://arxiv.org/abs/2312.00752"
    ),
)
