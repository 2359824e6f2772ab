"""The effect of a variant on an encoder: changes of sentence embeddings and of the order of sentences by similarity.

Sentences are ordered by their similarity to one other sentence, the query.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import metrics
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.models import LoadedModel
from attention_core.inputs.text import tokenise
from attention_core.model_patching import from_word, swapped

ENCODER = "minilm"
"""The built-in encoder."""
MAX_SENTENCE_TOKENS = 128
"""Maximum number of tokens read per sentence."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingTask:
    """A task that embeds sentences before and after a swap: a variant replaces softmax in some layers.

    Attributes:
        query: the sentence that the others are compared with.
        sentences: at least two sentences to compare with the query.
    """

    query: str
    sentences: tuple[str, ...]
    word: str
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRow:
    """The similarities of sentences to a query before and after a swap.

    Attributes:
        before: cosine similarity of each sentence's embedding and the query's, in the unchanged model.
        after: the same similarities in the swapped model.
        drift: one minus the cosine between an embedding before and after the swap, mean over all texts.
        tau: Kendall's τ-b between the rankings of the sentences before and after.
    """

    word: str
    layers: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    drift: float
    tau: float


def tasks(
    query: str, sentences: Sequence[str], words: Sequence[str], layers: tuple[int, ...]
) -> tuple[EmbeddingTask, ...]:
    """Return one task per variant; arguments as in ``EmbeddingTask``."""
    return tuple(EmbeddingTask(query=query, sentences=tuple(sentences), word=word, layers=layers) for word in words)


def run(task: EmbeddingTask, *, load: Load = load) -> tuple[EmbeddingRow]:
    """Embed every sentence in the unchanged and in the swapped model, and compare the rankings."""
    loaded, texts = models.load(ENCODER), (task.query, *task.sentences)
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


def embeddings(loaded: LoadedModel, texts: Sequence[str]) -> Tensor:
    """Return the mean of each text's last hidden states, normalized to length one, float64 ``[texts, size]``."""
    result = []
    for text in texts:
        ids = tokenise(text, model=loaded.info.key, max_tokens=MAX_SENTENCE_TOKENS).ids
        with torch.no_grad():
            hidden = loaded.model(input_ids=torch.tensor([ids])).last_hidden_state[0].double()
        result.append(hidden.mean(0) / hidden.mean(0).norm())
    return torch.stack(result)
