"""What does a variant do to an encoder? Sentence embeddings before and after a swap, and whom they find most alike."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import metrics
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.models import Loaded
from attention_core.inputs.text import tokenise
from attention_core.model_patching import from_word, swapped

ENCODER = "minilm"
"""The built-in encoder."""
SENTENCE = 128
"""Tokens of a sentence that are read."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingTask:
    """Sentences embedded before and after a swap.

    Attributes:
        query: what they are compared with.
        sentences: at least two.
        word: what attends in softmax's place.
        layers: in which layers.
        model: key of an encoder, or ``owner/name``.
    """

    query: str
    sentences: tuple[str, ...]
    word: str
    layers: tuple[int, ...]
    model: str = ENCODER


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRow:
    """Sentences embedded before and after a swap.

    Attributes:
        word: what attended.
        layers: in which layers.
        before: the cosine of each sentence with the query, as the model is.
        after: the same with the swap.
        drift: one minus the cosine of an embedding before and after, mean over the sentences and the query.
        tau: Kendall's τ-b of the two rankings.
    """

    word: str
    layers: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    drift: float
    tau: float


def tasks(
    query: str, sentences: Sequence[str], words: Sequence[str], layers: tuple[int, ...], *, model: str = ENCODER
) -> tuple[EmbeddingTask, ...]:
    """One per variant; arguments as of ``EmbeddingTask``."""
    return tuple(
        EmbeddingTask(query=query, sentences=tuple(sentences), word=word, layers=layers, model=model) for word in words
    )


def run(task: EmbeddingTask, *, load: Load = load) -> tuple[EmbeddingRow]:
    """Embed every sentence twice.

    Raises:
        LabError: if a sentence holds nothing, the model cannot be had, or it hides the future and the variant cannot.
    """
    loaded, texts = models.load(task.model), (task.query, *task.sentences)
    old = embeddings(loaded, texts)
    with swapped(loaded.model, dict.fromkeys(task.layers, from_word(task.word))):
        new = embeddings(loaded, texts)
    before, after = (x[1:] @ x[0] for x in (old, new))
    return (
        EmbeddingRow(
            word=task.word,
            layers=task.layers,
            before=tuple(before.tolist()),
            after=tuple(after.tolist()),
            drift=float(1 - (old * new).sum(-1).mean()),
            tau=metrics.kendall(before.tolist(), after.tolist()),
        ),
    )


def embeddings(loaded: Loaded, texts: Sequence[str]) -> Tensor:
    """The mean of each text's last hidden states, of length one, float64 ``[texts, size]``."""
    found = []
    for text in texts:
        ids = tokenise(text, model=loaded.info.key, max_tokens=SENTENCE).ids
        with torch.no_grad():
            hidden = loaded.model(input_ids=torch.tensor([ids])).last_hidden_state[0].double()
        found.append(hidden.mean(0) / hidden.mean(0).norm())
    return torch.stack(found)
