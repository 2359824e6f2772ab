"""The effect of a swap in a tiny trained model: another variant replaces its attention, without further training."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from attention_core.attention import Attention
from attention_core.experiments.task import Load, load
from attention_core.inputs.trained import trained_weights
from attention_core.learning.train import TrainSpec, evaluate, evaluation_batch, model_of
from attention_core.model_patching import from_word
from attention_core.runtime.progress import check


@dataclass(frozen=True, kw_only=True)
class TrainedSwapTask:
    """A task that measures a trained model with a replacement.

    Attributes:
        word: the variant that replaces the model's attention, or ``uniform``.
        layers: the replaced layers; empty for the unchanged model.
        weights: the trained parameters as safetensors, ignored when tasks are compared. If empty, the model is
            trained.
    """

    spec: TrainSpec
    word: str
    layers: tuple[int, ...]
    weights: bytes = field(default=b"", repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedSwapRow:
    """The answers of a trained model with a replacement, on sequences that training does not use.

    Attributes:
        loss: mean cross-entropy in nats per answer.
        accuracy: share of correct answers.
    """

    word: str
    layers: tuple[int, ...]
    loss: float
    accuracy: float


def tasks(
    spec: TrainSpec, words: Sequence[str], layers: Sequence[int], *, weights: bytes = b""
) -> tuple[TrainedSwapTask, ...]:
    """Return the tasks: the unchanged model, then each replacement; arguments as in ``TrainedSwapTask``."""
    swaps = [(word, tuple(layers)) for word in words]
    return tuple(
        TrainedSwapTask(spec=spec, word=word, layers=swapped_layers, weights=weights)
        for word, swapped_layers in ((spec.model.word, ()), *swaps)
    )


def run(task: TrainedSwapTask, *, load: Load = load) -> tuple[TrainedSwapRow]:
    """Replace the attention and measure the model."""
    check()
    spec, attends = task.spec, from_word(task.word)
    model = model_of(spec, task.weights or trained_weights(spec))
    for layer in task.layers:
        module: Any = model.layers[layer]
        if not (isinstance(attends, Attention) and attends.variant is module.attention.variant):
            module.learned = None  # Learned gates fit only the original variant.
        module.attention = attends
    loss, accuracy = evaluate(model, evaluation_batch(spec, spec.length, spec.items))
    return (TrainedSwapRow(word=task.word, layers=task.layers, loss=loss, accuracy=accuracy),)
