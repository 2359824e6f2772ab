"""Trains a tiny model; a run that is stopped and continued has the same result as an uninterrupted run.

The batch of a step depends on the seed and the step alone.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.learning.learning_task import IGNORED, Batch
from attention_core.learning.model import ModelSpec, TinyModel
from attention_core.learning.tasks import task
from attention_core.ops.random import generator
from attention_core.runtime import progress
from attention_core.runtime.torch_state import TORCH_STATE

EVALUATION_SEQUENCES = 256
"""Sequences on which accuracy is measured."""
MAX_GRADIENT_NORM = 1.0
"""Largest norm of the gradient; a longer one is scaled down."""
WARM_UP_STEPS = 20
"""Steps over which the learning rate rises linearly to its full value."""
REPORT_INTERVAL = 25
"""Number of steps between two reports of progress."""

_INIT, _BATCH, _LENGTH, _TEST = range(4)  # identifiers of independent random streams


@dataclass(frozen=True, kw_only=True)
class TrainSpec:
    """A training run.

    Attributes:
        model: the architecture, the task and the variant.
        length: tokens of a training sequence; the maximum if the task draws a random length for each step.
        items: pairs or symbols to remember; 0 if the task has none.
        steps: number of optimiser steps.
        batch: sequences per step.
        rate: learning rate of AdamW.
        seed: seed of the initial weights and of all sequences.
    """

    model: ModelSpec
    length: int
    items: int
    steps: int = 400
    batch: int = 64
    rate: float = 3e-3
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Row:
    """The state of a run after some steps, measured on sequences that training does not use.

    Attributes:
        variant: the variant and its settings.
        task: key of the task.
        seed: seed of the run.
        step: steps so far.
        length: tokens of the sequences on which the model is measured.
        items: pairs or symbols to remember in each of these sequences.
        loss: mean cross-entropy in nats; not finite if training failed.
        accuracy: share of correct predictions.
        seconds: CPU seconds of training so far.
        tokens: training tokens so far.
    """

    variant: str
    task: str
    seed: int
    step: int
    length: int
    items: int
    loss: float
    accuracy: float
    seconds: float
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A model and its optimiser after some steps.

    Attributes:
        step: steps so far.
        seconds: CPU seconds of training so far.
        tokens: training tokens so far.
        weights: the model's parameters as safetensors.
        moments: the optimiser's two moments of each parameter as safetensors.
    """

    step: int
    seconds: float
    tokens: int
    weights: bytes = field(repr=False)
    moments: bytes = field(repr=False)


def initial_model(spec: TrainSpec) -> TinyModel:
    """Return the untrained model; its weights depend on the seed and the architecture alone."""
    with TORCH_STATE, torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator(spec.seed, _INIT).initial_seed())
        return TinyModel(spec.model)


def training_batch(spec: TrainSpec, step: int) -> Batch:
    """Return the training batch of a step."""
    task_, length = task(spec.model.task), spec.length
    if task_.varied:
        length = int(torch.randint(task_.shortest, length + 1, (), generator=generator(spec.seed, _LENGTH, step)))
    return task_.sample(generator(spec.seed, _BATCH, step), spec.batch, length, spec.items)


def evaluation_batch(spec: TrainSpec, length: int, items: int, sequences: int = EVALUATION_SEQUENCES) -> Batch:
    """Return sequences that training does not use; they depend on the length, the items and the seed alone.

    Raises:
        InputError: if the task has no sequences of this length with this number of items.
    """
    task_ = task(spec.model.task)
    task_.check(length, items)
    held_out = {"held_out": True} if task_.held_out else {}
    return task_.sample(generator(spec.seed, _TEST, length, items), sequences, length, items, **held_out)


def loss_of(model: TinyModel, batch: Batch) -> Tensor:
    """Return the mean cross-entropy in nats over all positions with a target."""
    has_target = batch.targets != IGNORED
    return F.cross_entropy(model(batch.inputs, has_target), batch.targets[has_target])


@torch.no_grad()
def evaluate(model: TinyModel, batch: Batch) -> tuple[float, float]:
    """Return the loss in nats and the accuracy on a batch; logits that are not finite count as a wrong prediction."""
    logits, has_target = model(batch.inputs), batch.targets != IGNORED
    is_correct = (logits.argmax(-1) == batch.targets) & logits.isfinite().all(-1)
    loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)
    return float(loss), float(is_correct[has_target].float().mean())


def train_until(spec: TrainSpec, until: int, start: Checkpoint | None = None) -> tuple[TinyModel, Checkpoint]:
    """Train up to the step ``until``, from the beginning or from ``start``; return the model and its checkpoint.

    Raises:
        LabError: if the variant cannot be trained on the task.
    """
    model = initial_model(spec)
    optimizer = torch.optim.AdamW(model.parameters(), lr=spec.rate, weight_decay=0.0, fused=True)
    step_count, seconds, tokens = 0, 0.0, 0
    if start is not None:
        model.load_state_dict(_from_safetensors(start.weights))
        _restore_moments(optimizer, model, start)
        step_count, seconds, tokens = start.step, start.seconds, start.tokens
    start_time = time.thread_time()
    for step in range(step_count, min(until, spec.steps)):
        if step % REPORT_INTERVAL == 0:
            progress.step(step, spec.steps)
        batch = training_batch(spec, step)
        tokens += batch.targets.numel()
        for group in optimizer.param_groups:
            group["lr"] = spec.rate * min(1.0, (step + 1) / WARM_UP_STEPS)
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
        optimizer.step()
        step_count = step + 1
    seconds += time.thread_time() - start_time
    return model, Checkpoint(
        step=step_count,
        seconds=seconds,
        tokens=tokens,
        weights=_to_safetensors(model.state_dict()),
        moments=_moments(optimizer, model),
    )


def measure(spec: TrainSpec, model: TinyModel, checkpoint: Checkpoint, *, length: int = 0, items: int = 0) -> Row:
    """Evaluate a model at a checkpoint and return the row; 0 as ``length`` or ``items`` means that of ``spec``."""
    length, items = length or spec.length, items or spec.items
    loss, accuracy = evaluate(model, evaluation_batch(spec, length, items))
    return Row(
        variant=spec.model.word,
        task=spec.model.task,
        seed=spec.seed,
        step=checkpoint.step,
        length=length,
        items=items,
        loss=loss,
        accuracy=accuracy,
        seconds=checkpoint.seconds,
        tokens=checkpoint.tokens,
    )


def train(spec: TrainSpec, *, every: int = 25) -> Iterator[tuple[Row, Checkpoint]]:
    """Train a model; yield its row and checkpoint every ``every`` steps and after the last step."""
    checkpoint: Checkpoint | None = None
    while checkpoint is None or checkpoint.step < spec.steps:
        model, checkpoint = train_until(spec, (0 if checkpoint is None else checkpoint.step) + every, checkpoint)
        yield measure(spec, model, checkpoint), checkpoint


def model_of(spec: TrainSpec, weights: bytes) -> TinyModel:
    """Return the model with these weights, given as safetensors."""
    model = initial_model(spec)
    model.load_state_dict(_from_safetensors(weights))
    return model


def _to_safetensors(tensors: dict[str, Tensor]) -> bytes:
    from safetensors.torch import save  # Imported here, because safetensors is an optional package.

    return save(tensors)


def _from_safetensors(data: bytes) -> dict[str, Tensor]:
    from safetensors.torch import load  # Imported here, because safetensors is an optional package.

    return load(data)


def _moments(optimizer: torch.optim.Optimizer, model: TinyModel) -> bytes:
    state = optimizer.state
    return _to_safetensors(
        {
            f"{name}.{moment}": state[parameter][moment]
            for name, parameter in model.named_parameters()
            if parameter in state
            for moment in ("exp_avg", "exp_avg_sq")
        }
    )


def _restore_moments(optimizer: torch.optim.Optimizer, model: TinyModel, start: Checkpoint) -> None:
    moments = _from_safetensors(start.moments)
    for name, parameter in model.named_parameters():
        if f"{name}.exp_avg" in moments:
            optimizer.state[parameter] = {
                "step": torch.tensor(float(start.step)),
                "exp_avg": moments[f"{name}.exp_avg"],
                "exp_avg_sq": moments[f"{name}.exp_avg_sq"],
            }
