"""Maximum retrieval: name the class of the item with the largest number.

The last token is a query. To answer it, the attention must concentrate on one item. If the logits do not grow with the
length, softmax spreads its weight over more and more items ("attention disperses").
"""

import torch
import torch.nn.functional as F

from attention_core.formatting import N_
from attention_core.learning.learning_task import IGNORED, Batch, LearningTask
from attention_core.variant import Paper

CLASSES = 10


def sample(generator: torch.Generator, sequences: int, length: int, _items: int) -> Batch:
    """Return sequences of ``length - 1`` items and, as the last token, a query.

    The vector of an item holds its number, its class as a one-hot vector, and a 0. The vector of the query is zero
    except for its last entry, which is 1.
    """
    items = length - 1
    numbers = torch.rand(sequences, items, generator=generator, dtype=torch.float32)
    kinds = torch.randint(CLASSES, (sequences, items), generator=generator)
    inputs = torch.zeros(sequences, length, CLASSES + 2, dtype=torch.float32)
    inputs[:, :items, 0] = numbers
    inputs[:, :items, 1:-1] = F.one_hot(kinds, CLASSES).float()
    inputs[:, -1, -1] = 1.0
    targets = torch.full((sequences, length), IGNORED)
    targets[:, -1] = kinds.gather(1, numbers.argmax(-1, keepdim=True)).squeeze(-1)
    return Batch(inputs=inputs, targets=targets)


TASK = LearningTask(
    key="maximum",
    title=N_("Maximum retrieval"),
    summary=N_(
        "A sequence consists of items with a number and a class. The model must name the class of the item "
        "with the largest number."
    ),
    sample=sample,
    inputs=CLASSES + 2,
    classes=CLASSES,
    chance=lambda _length, _items: 1 / CLASSES,
    length=17,
    shortest=6,
    longest=1025,
    training=N_("It trains on {batch} new sequences of up to {length} tokens at each step."),
    varied=True,
    vectors=True,
    source=Paper(
        "Softmax Is Not Enough (for Sharp Size Generalisation)",
        2024,
        "https://arxiv.org/abs/2410.01104",
        authors="Veličković et al.",
    ),
)
