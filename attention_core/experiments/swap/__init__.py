"""The effect of a swap: without training, a variant replaces softmax in some layers of a language model (a decoder).

The experiment measures the model's losses on a text, its copying of repeated tokens, and the error of the variant's
outputs. Perplexity and copying measure different abilities, so both are measured together.
"""

import time
from collections.abc import Sequence

import torch

from attention_core import metrics, registry
from attention_core.experiments.swap.rows import COPY_DISTANCE as COPY_DISTANCE
from attention_core.experiments.swap.rows import (
    MODEL,
    CopyRow,
    CopyTask,
    OutputErrorRow,
    OutputErrorTask,
    ReadingRow,
    ReadingTask,
    SwapRow,
    SwapTask,
)
from attention_core.experiments.swap.rows import PERIOD as PERIOD
from attention_core.experiments.swap.rows import SEEDS as SEEDS
from attention_core.experiments.swap.rows import VOCABULARY as VOCABULARY
from attention_core.experiments.swap.sweeps import BASELINES as BASELINES
from attention_core.experiments.swap.sweeps import EDGES as EDGES
from attention_core.experiments.swap.sweeps import budget_tasks as budget_tasks
from attention_core.experiments.swap.sweeps import budget_variants as budget_variants
from attention_core.experiments.swap.sweeps import causal_words as causal_words
from attention_core.experiments.swap.sweeps import layer_counts as layer_counts
from attention_core.experiments.swap.sweeps import layer_tasks as layer_tasks
from attention_core.experiments.swap.sweeps import tasks as tasks
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.text import Tokens, tokenise
from attention_core.limits import current
from attention_core.model_patching import copy_losses, from_word, losses, perplexity, swapped
from attention_core.variant import SOFTMAX


def run(task: SwapTask, *, load: Load = load) -> tuple[SwapRow]:
    """Measure the losses on a text, the losses of the copy test, or the error of a variant's outputs.

    A recorded result is returned unless the task is live.
    """
    if not task.live and (found := recorded_row(task)) is not None:
        return (found,)
    return (compute(task),)


def recorded_row(task: SwapTask) -> SwapRow | None:
    """Return the recorded row of a task; None if there is no row, or it lacks the details that the task needs."""
    # ``records`` is not imported at the top of the file, because it needs msgspec, an optional package.
    from attention_core.experiments.swap import records

    return records.recorded_row(task)


def compute(task: SwapTask) -> SwapRow:
    """Run a task and return its row, even if a recorded row exists."""
    if isinstance(task, ReadingTask):
        return measure_reading(task)
    return measure_copying(task) if isinstance(task, CopyTask) else measure_output_error(task)


def text_tokens(text: str, *, tokens: int | None = None, model: str = MODEL) -> Tokens:
    """Return the tokens of a text that the model reads; errors as in ``inputs.from_text``."""
    limit = current().swap_tokens
    return tokenise(text, model=model, max_tokens=limit if tokens is None else min(tokens, limit))


def measure_reading(task: ReadingTask) -> ReadingRow:
    """Read the text of a task and return its row, even if a recorded row exists."""
    loaded, text = models.load(task.model), text_tokens(task.text, tokens=task.tokens, model=task.model)
    attention, start = from_word(task.word), time.perf_counter()
    with swapped(loaded.model, dict.fromkeys(task.layers, attention)):
        token_losses = losses(loaded, text.ids)
    return ReadingRow(
        word=task.word,
        layers=task.layers,
        tokens=len(text.ids),
        total=text.total,
        perplexity=perplexity(token_losses),
        seconds=time.perf_counter() - start,
        labels=text.labels if task.detail else (),
        losses=_rounded(token_losses) if task.detail else (),
    )


def measure_copying(task: CopyTask) -> CopyRow:
    """Run the copy test of a task and return its row."""
    loaded, attention, start = models.load(task.model), from_word(task.word), time.perf_counter()
    with swapped(loaded.model, dict.fromkeys(task.layers, attention)):
        first, second = copy_losses(loaded, task.period, task.seed)
    return CopyRow(
        word=task.word,
        layers=task.layers,
        seed=task.seed,
        period=task.period,
        first=float(first.mean()),
        copied=float(second.mean()),
        seconds=time.perf_counter() - start,
        losses=_rounded(second) if task.detail else (),
    )


def measure_output_error(task: OutputErrorTask) -> OutputErrorRow:
    """Measure the error of a variant's outputs and return the row."""
    ids = text_tokens(task.text, tokens=task.tokens, model=task.model).ids
    output = output_error(ids, task.word, task.layers, model=task.model)
    return OutputErrorRow(word=task.word, layers=task.layers, output=output)


def output_error(ids: Sequence[int], word: str, layers: Sequence[int], *, model: str = MODEL) -> float:
    """Return the relative error of a variant's outputs compared with softmax's.

    Both attend to the unchanged model's queries, keys and values.

    Args:
        ids: the tokens that the model reads.
        word: the variant, as ``model_patching.from_word`` reads it.
        layers: the layers compared; the error is the mean over all heads of these layers, 0 without layers.
        model: key of a decoder, or ``owner/name``.
    """
    # ``recorder`` is not imported at the top of the file, because it imports transformers, which takes seconds.
    from attention_core.inputs.models.recorder import record

    loaded, attention, softmax = models.load(model), from_word(word), registry.get(SOFTMAX)
    errors = []
    for layer in record(loaded.model, ids, set(layers)).values():
        outputs, exact = (a.attend(layer.q, layer.k, layer.v, causal=layer.causal) for a in (attention, softmax))
        errors += [float(metrics.relative_error(a, b)) for a, b in zip(outputs.double(), exact.double(), strict=True)]
    return sum(errors) / len(errors) if errors else 0.0


def _rounded(token_losses: torch.Tensor) -> tuple[float, ...]:
    """Round losses to 1e-4 nats: finer than a chart shows, coarser than the rounding differences between machines."""
    return tuple(round(loss, 4) for loss in token_losses.tolist())
