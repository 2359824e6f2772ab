"""How does a text go on? A decoder writes, as it is and with a variant in its layers, greedily or by chance."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from attention_core import registry
from attention_core.experiments import generation
from attention_core.experiments.swap import MODEL, text_tokens
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.models import Loaded
from attention_core.model_patching import UNIFORM, from_word, swapped, unembedding
from attention_core.runtime import progress
from attention_core.variant import SOFTMAX

STEPS = 20
"""Tokens that are written: a sentence or two, in some seconds."""


@dataclass(frozen=True, kw_only=True)
class ContinuationTask:
    """A text continued once.

    Attributes:
        text: how it begins.
        word: what attends.
        layers: in which layers; none for the model as it is.
        seed: of the chances, the same for whoever writes; None to take the likeliest token each time.
        steps: tokens that are written.
        model: key of a decoder, or ``owner/name``.
    """

    text: str
    word: str = SOFTMAX
    layers: tuple[int, ...] = ()
    seed: int | None = None
    steps: int = STEPS
    model: str = MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationRow:
    """A text continued once.

    Attributes:
        word: what attended.
        layers: in which layers.
        seed: as of the task.
        prompt: tokens it began with.
        ids: the tokens that were written.
        written: the same as text, one piece each.
        seconds: of writing, without reading what was there.
        held: bytes that must be kept to write on: keys and values that anything may look at again, or a state.
    """

    word: str
    layers: tuple[int, ...]
    seed: int | None
    prompt: int
    ids: tuple[int, ...]
    written: tuple[str, ...]
    seconds: float
    held: int


def tasks(
    text: str, words: Sequence[str], layers: tuple[int, ...], *, seed: int, model: str = MODEL
) -> tuple[ContinuationTask, ...]:
    """The model as it is and each variant, all greedily, then all by chance; arguments as of ``ContinuationTask``."""
    readers: list[tuple[str, tuple[int, ...]]] = [(SOFTMAX, ()), *((word, layers) for word in words)]
    return tuple(
        ContinuationTask(text=text, word=word, layers=which, seed=chances, model=model)
        for chances in (None, seed)
        for word, which in readers
    )


def run(task: ContinuationTask, *, load: Load = load) -> tuple[ContinuationRow]:
    """Read the text into a cache and write on, token by token, a step each.

    Chances are drawn by adding Gumbel noise to the logits and taking the largest: who is given the same noise writes
    the same as long as it expects the same.

    Raises:
        LabError: if the text holds nothing, the model cannot be had, or the variant cannot be causal.
    """
    from transformers import DynamicCache

    loaded, told = models.load(task.model), text_tokens(task.text, model=task.model)
    weight, cache, ids = unembedding(loaded), DynamicCache(), list(told.ids)
    chances = None if task.seed is None else torch.Generator().manual_seed(task.seed)
    with swapped(loaded.model, dict.fromkeys(task.layers, from_word(task.word))), torch.no_grad():
        given = torch.tensor([ids])
        for step in range(task.steps):
            state = loaded.model(input_ids=given, past_key_values=cache, use_cache=True).last_hidden_state[0, -1]
            if step == 0:
                begun = time.perf_counter()
            logits = state @ weight.mT
            if chances is not None:
                logits = logits - torch.empty_like(logits).exponential_(generator=chances).log()
            ids.append(int(logits.argmax()))
            progress.step(step + 1, task.steps)
            given = torch.tensor([[ids[-1]]])
        seconds = time.perf_counter() - begun
    new = ids[len(told.ids) :]
    return (
        ContinuationRow(
            word=task.word,
            layers=task.layers,
            seed=task.seed,
            prompt=len(told.ids),
            ids=tuple(new),
            written=tuple(loaded.tokenizer.decode([i]) for i in new),
            seconds=seconds,
            held=held(loaded, task.word, task.layers, len(ids)),
        ),
    )


def parting(one: ContinuationRow, other: ContinuationRow) -> int | None:
    """The first token in which two continuations differ, from 0; None where they never do."""
    return next((i for i, (a, b) in enumerate(zip(one.ids, other.ids, strict=True)) if a != b), None)


def held(loaded: Loaded, word: str, layers: Sequence[int], n: int) -> int:
    """Bytes that a model of float32 keeps after n tokens to write on, each layer as what attends there needs."""
    config, info = loaded.model.config.get_text_config(), loaded.info
    groups = getattr(config, "num_key_value_heads", None) or info.heads
    token = 2 * groups * info.head_size * 4  # a key and a value in every group
    return (info.layers - len(layers)) * n * token + len(layers) * _kept(word, info.heads, info.head_size, n, token)


def _kept(word: str, heads: int, d: int, n: int, token: int) -> int:
    """What one layer keeps."""
    if word == UNIFORM:
        return heads * d * 4  # the sum of the values
    variant = registry.from_word(word).variant
    if variant.decoder is not None:
        [row] = generation.run(generation.HeldTask(word=word, heads=heads, d=d, d_v=d))
        return row.state_bytes
    mask = registry.from_word(word).mask(2 * n, causal=True)
    if mask is None:
        return n * token
    return int(mask[n:, :n].any(0).sum()) * token  # what any of as many tokens to come may look at
