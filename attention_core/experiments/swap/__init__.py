"""The effect of a swap: without training, a variant replaces softmax in some layers of a language model (a decoder).

Measured are the model's losses on a text, its copying of repeated tokens, and the error of the variant's outputs.
Perplexity and copying measure different abilities, so both are measured together.
"""

import time
from collections.abc import Sequence

import torch

from attention_core import metrics, registry
from attention_core.experiments.swap.rows import (
    COPY_DISTANCE,
    MODEL,
    PERIOD,
    SEEDS,
    VOCABULARY,
    CopyRow,
    CopyTask,
    OutputErrorRow,
    OutputErrorTask,
    ReadingRow,
    ReadingTask,
    SwapRow,
    SwapTask,
)
from attention_core.experiments.swap.sweeps import (
    EDGES,
    FLOORS,
    budget_tasks,
    causal_words,
    depths,
    ladder,
    layer_tasks,
    tasks,
)
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.text import Tokens, tokenise
from attention_core.limits import current
from attention_core.model_patching import copy_losses, from_word, losses, perplexity, swapped
from attention_core.variant import SOFTMAX

__all__ = [
    "COPY_DISTANCE",
    "EDGES",
    "FLOORS",
    "MODEL",
    "PERIOD",
    "SEEDS",
    "VOCABULARY",
    "CopyRow",
    "CopyTask",
    "OutputErrorRow",
    "OutputErrorTask",
    "ReadingRow",
    "ReadingTask",
    "SwapRow",
    "SwapTask",
    "budget_tasks",
    "causal_words",
    "compute",
    "copying",
    "depths",
    "known",
    "ladder",
    "layer_tasks",
    "measure_output_error",
    "output_error",
    "reading",
    "run",
    "tasks",
    "text_tokens",
]


def run(task: SwapTask, *, load: Load = load) -> tuple[SwapRow]:
    """Read a text, copy tokens or compare outputs; a recorded result is returned unless the task is live."""
    if not task.live and (found := known(task)) is not None:
        return (found,)
    return (compute(task),)


def known(task: SwapTask) -> SwapRow | None:
    """Return the recorded row of a task; None if there is no row, or it lacks the details that the task needs."""
    # The records are read with msgspec, which the library itself does not need.
    from attention_core.experiments.swap import records

    return records.known(task)


def compute(task: SwapTask) -> SwapRow:
    """Run a task even if its result is recorded; errors as in ``run``."""
    if isinstance(task, ReadingTask):
        return reading(task)
    return copying(task) if isinstance(task, CopyTask) else measure_output_error(task)


def text_tokens(text: str, *, tokens: int | None = None, model: str = MODEL) -> Tokens:
    """Return the tokens of a text that the model reads; errors as in ``inputs.from_text``."""
    most = current().swap_tokens
    return tokenise(text, model=model, max_tokens=most if tokens is None else min(tokens, most))


def reading(task: ReadingTask) -> ReadingRow:
    """Read a text even if the result is recorded; errors as in ``run``."""
    loaded, text = models.load(task.model), text_tokens(task.text, tokens=task.tokens, model=task.model)
    attends, begun = from_word(task.word), time.perf_counter()
    with swapped(loaded.model, dict.fromkeys(task.layers, attends)):
        found = losses(loaded, text.ids)
    return ReadingRow(
        word=task.word,
        layers=task.layers,
        tokens=len(text.ids),
        total=text.total,
        perplexity=perplexity(found),
        seconds=time.perf_counter() - begun,
        labels=text.labels if task.detail else (),
        losses=_rounded(found) if task.detail else (),
    )


def copying(task: CopyTask) -> CopyRow:
    """Run the copy test; errors as in ``run``."""
    loaded, attends, begun = models.load(task.model), from_word(task.word), time.perf_counter()
    with swapped(loaded.model, dict.fromkeys(task.layers, attends)):
        first, second = copy_losses(loaded, task.period, task.seed)
    return CopyRow(
        word=task.word,
        layers=task.layers,
        seed=task.seed,
        period=task.period,
        first=float(first.mean()),
        copied=float(second.mean()),
        seconds=time.perf_counter() - begun,
        losses=_rounded(second) if task.detail else (),
    )


def measure_output_error(task: OutputErrorTask) -> OutputErrorRow:
    """Measure the error of a variant's outputs; errors as in ``run``."""
    ids = text_tokens(task.text, tokens=task.tokens, model=task.model).ids
    output = output_error(ids, task.word, task.layers, model=task.model)
    return OutputErrorRow(word=task.word, layers=task.layers, output=output)


def output_error(ids: Sequence[int], word: str, layers: Sequence[int], *, model: str = MODEL) -> float:
    """Return the relative error of a variant's outputs on the unchanged model's queries, keys and values.

    Args:
        ids: the tokens that the model reads.
        word: the variant, as ``model_patching.from_word`` reads it.
        layers: the layers compared; the error is the mean over their heads, 0 for no layer.
        model: key of a decoder, or ``owner/name``.
    """
    # Imported here because it imports transformers, which takes seconds. A loaded model has imported it already.
    from attention_core.inputs.models.recorder import record

    loaded, attends, exact = models.load(model), from_word(word), registry.get(SOFTMAX)
    found = []
    for layer in record(loaded.model, ids, set(layers)).values():
        own, true = (a.attend(layer.q, layer.k, layer.v, causal=layer.causal) for a in (attends, exact))
        found += [float(metrics.relative_error(a, b)) for a, b in zip(own.double(), true.double(), strict=True)]
    return sum(found) / len(found) if found else 0.0


def _rounded(found: torch.Tensor) -> tuple[float, ...]:
    """Round losses to 1e-4 nats: finer than a chart shows, coarser than the rounding differences between machines."""
    return tuple(round(loss, 4) for loss in found.tolist())
