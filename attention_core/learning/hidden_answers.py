"""How often a fixed mask hides the answer from the token that must predict it, and how much weight is on the answer."""

import numpy as np
import torch

from attention_core import registry
from attention_core.learning.learning_task import IGNORED, Batch
from attention_core.learning.tasks import task
from attention_core.learning.train import TrainSpec, evaluation_batch


def hidden_share(spec: TrainSpec, length: int | None = None) -> float:
    """Return the share of predictions whose answer is at no token that the predicting token can attend to in one layer.

    It is 0 for a task whose answers are not symbols of the sequence, and for a variant without a fixed mask.

    Args:
        spec: the training run, which determines the task, the variant and the sequences.
        length: tokens of a sequence; those of training for None.
    """
    wanted, length = task(spec.model.task), length or spec.length
    mask = registry.from_word(spec.model.word).mask(length, causal=wanted.causal)
    if mask is None or not wanted.shows_answers:
        return 0.0
    predicts, is_answer = _answers(evaluation_batch(spec, length, spec.items))
    return float((~(is_answer & mask).any(-1))[predicts].float().mean())


def answer_weight(spec: TrainSpec, matrix: np.ndarray) -> float:
    """Return the mean weight that the predicting tokens of the example give to the tokens that are their answers.

    Args:
        spec: the training run, of a task whose answers are symbols of the sequence.
        matrix: attention matrix on the example, ``[n, n]``.
    """
    predicts, is_answer = _answers(evaluation_batch(spec, spec.length, spec.items, sequences=1))
    weights = torch.from_numpy(matrix.astype("float32"))
    return float((weights * is_answer[0]).sum(-1)[predicts[0]].mean())


def _answers(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which tokens predict, ``[sequences, n]``, and which tokens are their answers, ``[sequences, n, n]``."""
    return batch.targets != IGNORED, batch.inputs[:, None, :] == batch.targets[:, :, None]
