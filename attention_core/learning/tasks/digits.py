"""Handwritten digits: classify an image of 8 x 8 pixels that are read as 64 tokens.

The images are the test set of Alpaydin and Kaynak's "Optical Recognition of Handwritten Digits" (1998), UCI Machine
Learning Repository, licence CC BY 4.0. They are the images of scikit-learn's ``load_digits``.
"""

import zlib
from functools import cache
from importlib import resources

import torch
from torch import Tensor

from attention_core.formatting import N_
from attention_core.learning.learning_task import Batch, LearningTask
from attention_core.variant import Paper

PIXELS = 64
DEPTH = 16
"""The largest value of a pixel."""
TRAINED = 1500
"""The number of images for training. The other 297 are for evaluation."""


@cache
def images() -> tuple[Tensor, Tensor]:
    """Return all images, ``[1797, 64]`` float32 from 0 to 1, and their digits, ``[1797]`` int64."""
    file = resources.files("attention_core.learning").joinpath("recorded/digits.zlib")
    data = torch.frombuffer(bytearray(zlib.decompress(file.read_bytes())), dtype=torch.uint8)
    count = len(data) // (PIXELS + 1)  # one byte for each pixel of all images, then one byte for each digit
    return data[: count * PIXELS].view(count, PIXELS).float() / DEPTH, data[count * PIXELS :].long()


def sample(generator: torch.Generator, sequences: int, _length: int, _items: int, *, held_out: bool = False) -> Batch:
    """Return random images for training or, if ``held_out``, for evaluation.

    Each pixel is a token whose vector is its brightness, and every target is the digit.
    """
    pixels, digits = images()
    low, high = (TRAINED, len(digits)) if held_out else (0, TRAINED)
    chosen = torch.randint(low, high, (sequences,), generator=generator)
    return Batch(inputs=pixels[chosen].unsqueeze(-1), targets=digits[chosen, None].expand(-1, PIXELS).contiguous())


TASK = LearningTask(
    key="digits",
    title=N_("Handwritten digits"),
    summary=N_(
        "An image of 8 × 8 pixels is read as 64 tokens. At every token, the model must predict which digit the image "
        "shows."
    ),
    sample=sample,
    inputs=1,
    classes=10,
    chance=lambda _length, _items: 1 / 10,
    length=PIXELS,
    shortest=PIXELS,
    longest=PIXELS,
    vectors=True,
    causal=False,
    positions="learned",
    training=N_("Each step uses {batch} random images of the {examples:,} for training."),
    held_out=True,
    examples=TRAINED,
    source=Paper("Optical Recognition of Handwritten Digits", 1998, "https://archive.ics.uci.edu/dataset/80"),
)
