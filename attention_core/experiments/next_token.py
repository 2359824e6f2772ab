"""The most probable next tokens before and after a variant replaces softmax, and the attention row that changes most.

The experiment predicts only one token of a text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import registry
from attention_core.experiments.swap import MODEL, text_tokens
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.models import LoadedModel
from attention_core.model_patching import Attends, from_word, swapped, unembedding
from attention_core.variant import SOFTMAX

LISTED_TOKENS = 5
"""Number of next tokens listed."""


@dataclass(frozen=True, kw_only=True)
class NextTokenTask:
    """A task that predicts one token of a text before and after a swap, in which a variant replaces softmax.

    Attributes:
        token: index of the predicted token in the text, counted from 0; at least 1.
    """

    text: str
    word: str
    layers: tuple[int, ...]
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTokenRow:
    """The prediction of one token before and after a swap.

    Attributes:
        token: index of the predicted token in the text, counted from 0; at least 1.
        label: the token.
        probabilities: the token's probability before and after the swap.
        before: the likeliest tokens of the unchanged model, with probabilities.
        after: the likeliest tokens of the swapped model, with probabilities.
        layer: the swapped layer with the head whose attention from the last token changed most.
        head: this head.
        moved_weight: share of the last token's attention weight in this head that moved to other tokens.
        context: labels of the tokens that the last token can attend to.
        row_before: attention weights of the last token before the swap.
        row_after: attention weights of the last token after the swap.
    """

    token: int
    label: str
    probabilities: tuple[float, float]
    before: tuple[tuple[str, float], ...]
    after: tuple[tuple[str, float], ...]
    layer: int
    head: int
    moved_weight: float
    context: tuple[str, ...]
    row_before: tuple[float, ...]
    row_after: tuple[float, ...]


def tasks(text: str, word: str, layers: tuple[int, ...], token: int) -> tuple[NextTokenTask, ...]:
    """Return a tuple with one task; arguments as in ``NextTokenTask``."""
    return (NextTokenTask(text=text, word=word, layers=layers, token=token),)


def run(task: NextTokenTask, *, load: Load = load) -> tuple[NextTokenRow]:
    """Read the text up to the token with the unchanged and with the swapped model."""
    loaded, text = models.load(MODEL), text_tokens(task.text)
    ids, attends = text.ids[: task.token], from_word(task.word)
    old, before = _predict(loaded, ids, registry.get(SOFTMAX), task.layers)
    with swapped(loaded.model, dict.fromkeys(task.layers, attends)):
        new, after = _predict(loaded, ids, attends, task.layers)
    moved_weight = (after - before).abs().sum(-1) / 2  # [L, H]; total variation of the rows if both sum to one
    layer, head = divmod(int(moved_weight.argmax()), moved_weight.shape[1])
    target = text.ids[task.token]
    return (
        NextTokenRow(
            token=task.token,
            label=text.labels[task.token],
            probabilities=(float(old[target]), float(new[target])),
            before=_most_likely_tokens(loaded, old),
            after=_most_likely_tokens(loaded, new),
            layer=task.layers[layer],
            head=head,
            moved_weight=float(moved_weight[layer, head]),
            context=text.labels[: task.token],
            row_before=tuple(before[layer, head].tolist()),
            row_after=tuple(after[layer, head].tolist()),
        ),
    )


def _predict(loaded: LoadedModel, ids: Sequence[int], attends: Attends, layers: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the next token's probabilities, ``[vocabulary]``, and the last token's weights by layer, ``[L, H, n]``."""
    # ``recorder`` is not imported at the top of the file, because it imports transformers, which takes seconds.
    from attention_core.inputs.models.recorder import record

    with torch.no_grad():
        hidden = loaded.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
        probabilities = (hidden @ unembedding(loaded).mT).softmax(-1)
        records = record(loaded.model, ids, set(layers))
        rows = [attends.weights(records[layer].q, records[layer].k, causal=True)[:, -1] for layer in layers]
    return probabilities, torch.stack(rows)


def _most_likely_tokens(loaded: LoadedModel, probabilities: Tensor) -> tuple[tuple[str, float], ...]:
    largest = probabilities.topk(LISTED_TOKENS)
    words = [loaded.tokenizer.decode([i]) for i in largest.indices.tolist()]
    return tuple(zip(words, largest.values.tolist(), strict=True))
