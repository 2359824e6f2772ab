"""Texts continued by a language model (a decoder), unchanged and with a variant in place of softmax in some layers.

The next token is the most probable token (greedy), or is sampled. The continuations that the app's Model page shows
first are recorded in one JSON file, so that visitors need not wait for them.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import msgspec
import torch

from attention_core import registry
from attention_core.benchmarking.device import Stamp
from attention_core.experiments import generation
from attention_core.experiments.swap import MODEL, records, text_tokens
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.models import LoadedModel
from attention_core.model_patching import UNIFORM, from_word, swapped, unembedding
from attention_core.runtime import progress
from attention_core.variant import SOFTMAX

STEPS = 20
"""Number of generated tokens: one or two sentences, in a few seconds."""
FILE = "model_patching/recorded/continuation.json"
"""Path of the recorded file in the package; ``python -m pages.model.record`` writes it."""


@dataclass(frozen=True, kw_only=True)
class ContinuationTask:
    """A task that continues a text once.

    Attributes:
        text: the prompt.
        seed: seed of the sampling noise, the same for every variant; None for greedy decoding.
        steps: number of tokens to generate.
    """

    text: str
    word: str = SOFTMAX
    layers: tuple[int, ...] = ()
    seed: int | None = None
    steps: int = STEPS
    live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationRow:
    """A text continued once.

    Attributes:
        seed: the task's seed.
        prompt: number of tokens in the prompt.
        ids: vocabulary numbers of the generated tokens.
        written: the generated text, one piece per token.
        seconds: time of generation, without reading the prompt.
        held: bytes that generation needs for the next token: keys and values that can be attended to, or a state.
    """

    word: str
    layers: tuple[int, ...]
    seed: int | None
    prompt: int
    ids: tuple[int, ...]
    written: tuple[str, ...]
    seconds: float
    held: int
    recorded: str = ""


class Document(msgspec.Struct, frozen=True):
    """The recorded file: the rows, by the keys of their tasks."""

    stamp: Stamp
    rows: dict[str, ContinuationRow]


def tasks(
    text: str, words: Sequence[str], layers: tuple[int, ...], *, seed: int, live: bool = False
) -> tuple[ContinuationTask, ...]:
    """Return tasks for the unchanged model and each variant: first with greedy decoding, then with sampling."""
    runs: list[tuple[str, tuple[int, ...]]] = [(SOFTMAX, ()), *((word, layers) for word in words)]
    return tuple(
        ContinuationTask(text=text, word=word, layers=run_layers, seed=run_seed, live=live)
        for run_seed in (None, seed)
        for word, run_layers in runs
    )


def key(task: ContinuationTask) -> str | None:
    """Return the key of a task in the recorded file; None if it does not generate ``STEPS`` tokens."""
    if task.steps != STEPS:
        return None
    seed = "greedy" if task.seed is None else task.seed
    return f"{records.digest(task.text)} {task.word} {records.format_layers(task.layers)} {seed}"


def recorded_row(task: ContinuationTask) -> ContinuationRow | None:
    """Return the recorded row of a task; None if there is no row."""
    name, document = key(task), recorded_document()
    row = None if name is None or document is None else document.rows.get(name)
    if row is None or document is None:
        return None
    return replace(row, recorded=f"{document.stamp.date[:10]}, {document.stamp.cpu}")


@cache
def recorded_document() -> Document | None:
    """Return the content of the recorded file; None if the file does not exist."""
    file = resources.files("attention_core").joinpath(FILE)
    return msgspec.json.decode(file.read_bytes(), type=Document) if file.is_file() else None


def to_json(stamp: Stamp, results: Iterable[tuple[ContinuationTask, ContinuationRow]]) -> bytes:
    """Encode rows as the recorded file, one row per line."""
    rows = {name: row for task, row in results if (name := key(task)) is not None}
    head = msgspec.json.encode(stamp)
    lines = [msgspec.json.encode(name) + b": " + msgspec.json.encode(row) for name, row in rows.items()]
    return b'{\n"stamp": ' + head + b',\n"rows": {\n' + b",\n".join(lines) + b"\n}\n}\n"


def run(task: ContinuationTask, *, load: Load = load) -> tuple[ContinuationRow]:
    """Read the text into a cache and generate token by token; a recorded result is returned unless the task is live.

    Raises:
        LabError: as in ``compute``.
    """
    if not task.live and (found := recorded_row(task)) is not None:
        return (found,)
    return (compute(task),)


def compute(task: ContinuationTask) -> ContinuationRow:
    """Generate even if the result is recorded, reporting progress at each step.

    Sampling adds Gumbel noise to the logits and takes the largest. With the same noise, two models generate the same
    tokens as long as their predictions agree.
    """
    from transformers import DynamicCache

    loaded, text = models.load(MODEL), text_tokens(task.text)
    output_weight, cache, ids = unembedding(loaded), DynamicCache(), list(text.ids)
    generator = None if task.seed is None else torch.Generator().manual_seed(task.seed)
    with swapped(loaded.model, dict.fromkeys(task.layers, from_word(task.word))), torch.no_grad():
        inputs = torch.tensor([ids])
        for step in range(task.steps):
            state = loaded.model(input_ids=inputs, past_key_values=cache, use_cache=True).last_hidden_state[0, -1]
            if step == 0:
                start = time.perf_counter()
            logits = state @ output_weight.mT
            if generator is not None:
                logits = logits - torch.empty_like(logits).exponential_(generator=generator).log()
            ids.append(int(logits.argmax()))
            progress.step(step + 1, task.steps)
            inputs = torch.tensor([[ids[-1]]])
        seconds = time.perf_counter() - start
    generated = ids[len(text.ids) :]
    return ContinuationRow(
        word=task.word,
        layers=task.layers,
        seed=task.seed,
        prompt=len(text.ids),
        ids=tuple(generated),
        written=tuple(loaded.tokenizer.decode([i]) for i in generated),
        seconds=seconds,
        held=cache_bytes(loaded, task.word, task.layers, len(ids)),
    )


def first_difference(one: ContinuationRow, other: ContinuationRow) -> int | None:
    """Return the index of the first token in which two continuations differ; None if they are equal."""
    return next((i for i, (a, b) in enumerate(zip(one.ids, other.ids, strict=True)) if a != b), None)


def cache_bytes(loaded: LoadedModel, word: str, layers: Sequence[int], n: int) -> int:
    """Return the bytes of the float32 cache of all layers after n tokens; ``layers`` use the variant ``word``."""
    config, info = loaded.model.config.get_text_config(), loaded.info
    kv_heads = getattr(config, "num_key_value_heads", None) or info.heads
    token_bytes = 2 * kv_heads * info.head_size * 4  # bytes of a key and a value in every group of heads, in float32
    replaced = len(layers) * _layer_bytes(word, info.heads, info.head_size, n, token_bytes)
    return (info.layers - len(layers)) * n * token_bytes + replaced


def _layer_bytes(word: str, heads: int, d: int, n: int, token_bytes: int) -> int:
    if word == UNIFORM:
        return heads * d * 4  # the running sum of the values
    attention = registry.from_word(word)
    if attention.variant.decoder is not None:
        return generation.memory_bytes(attention, heads, d, d)[0]
    return generation.needed_keys(attention, n) * token_bytes
