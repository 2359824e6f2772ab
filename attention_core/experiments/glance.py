"""The most probable next tokens before and after a variant replaces softmax, and the attention row that changes most.

Only one token of a text is predicted.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import registry
from attention_core.experiments.swap import MODEL, text_tokens
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.models import Loaded
from attention_core.model_patching import Attends, from_word, swapped, unembedding
from attention_core.variant import SOFTMAX

LIKELY = 5
"""Number of next tokens listed."""


@dataclass(frozen=True, kw_only=True)
class NextTokenTask:
    """A task that predicts one token of a text before and after a swap.

    Attributes:
        token: position of the token in the text, from 1.
    """

    text: str
    word: str
    layers: tuple[int, ...]
    token: int
    model: str = MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTokenRow:
    """The prediction of one token before and after a swap.

    Attributes:
        token: its position.
        label: the token.
        chances: its probability before and after.
        before: the likeliest tokens of the unchanged model, with probabilities.
        after: the likeliest tokens of the swapped model, with probabilities.
        layer: the swapped layer whose last row changed most.
        head: the head of that row.
        moved: share of that row's weight that moved to other tokens.
        context: the tokens that the row can attend to.
        row_before: attention weights of the last token before the swap.
        row_after: attention weights of the last token after the swap.
    """

    token: int
    label: str
    chances: tuple[float, float]
    before: tuple[tuple[str, float], ...]
    after: tuple[tuple[str, float], ...]
    layer: int
    head: int
    moved: float
    context: tuple[str, ...]
    row_before: tuple[float, ...]
    row_after: tuple[float, ...]


def tasks(
    text: str, word: str, layers: tuple[int, ...], token: int, *, model: str = MODEL
) -> tuple[NextTokenTask, ...]:
    """Return a single task; arguments as in ``NextTokenTask``."""
    return (NextTokenTask(text=text, word=word, layers=layers, token=token, model=model),)


def run(task: NextTokenTask, *, load: Load = load) -> tuple[NextTokenRow]:
    """Read the text up to the token with the unchanged and with the swapped model."""
    loaded, text = models.load(task.model), text_tokens(task.text, model=task.model)
    ids, attends = text.ids[: task.token], from_word(task.word)
    old, before = _predict(loaded, ids, registry.get(SOFTMAX), task.layers)
    with swapped(loaded.model, dict.fromkeys(task.layers, attends)):
        new, after = _predict(loaded, ids, attends, task.layers)
    moved = (after - before).abs().sum(-1) / 2  # [L, H]; total variation of the rows if both sum to one
    layer, head = divmod(int(moved.argmax()), moved.shape[1])
    target = text.ids[task.token]
    return (
        NextTokenRow(
            token=task.token,
            label=text.labels[task.token],
            chances=(float(old[target]), float(new[target])),
            before=_likeliest(loaded, old),
            after=_likeliest(loaded, new),
            layer=task.layers[layer],
            head=head,
            moved=float(moved[layer, head]),
            context=text.labels[: task.token],
            row_before=tuple(before[layer, head].tolist()),
            row_after=tuple(after[layer, head].tolist()),
        ),
    )


def _predict(loaded: Loaded, ids: tuple[int, ...], attends: Attends, layers: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the next token's probabilities ``[words]``, and the last token's weights per layer, ``[L, H, n]``."""
    # Imported here because it imports transformers, which takes seconds. A loaded model has imported it already.
    from attention_core.inputs.models.recorder import record

    with torch.no_grad():
        hidden = loaded.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
        chances = (hidden @ unembedding(loaded).mT).softmax(-1)
        found = record(loaded.model, ids, set(layers))
        rows = [attends.weights(found[each].q, found[each].k, causal=True)[:, -1] for each in layers]
    return chances, torch.stack(rows)


def _likeliest(loaded: Loaded, chances: Tensor) -> tuple[tuple[str, float], ...]:
    found = chances.topk(LIKELY)
    words = [loaded.tokenizer.decode([i]) for i in found.indices.tolist()]
    return tuple(zip(words, found.values.tolist(), strict=True))
