"""Measures how often a variant's mask hides an answer, and how much attention weight the answers receive.

In some tasks, an answer is a symbol of the sequence that the model must find by attention. A mask hides an answer if
the token that predicts it cannot attend to this symbol.
"""

from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F

from attention_core import registry
from attention_core.learning.learning_task import IGNORED, Batch
from attention_core.learning.tasks import task
from attention_core.learning.train import TrainSpec, evaluation_batch

MAX_CACHED = 256
"""Number of results cached per function, because the Learn page needs each result several times."""


@lru_cache(MAX_CACHED)
def hidden_share(spec: TrainSpec, layers: int = 1) -> float:
    """Return the share of predictions for which the mask hides every token that holds the answer.

    With several layers, information about an answer can also pass through tokens in between. The share is 0 for a
    task whose answers are not symbols of the sequence, and for a variant without a fixed mask.

    Args:
        spec: the training run, which determines the task, the variant and the sequences.
        layers: number of stacked layers.
    """
    task_ = task(spec.model.task)
    mask = registry.from_word(spec.model.word).mask(spec.length, causal=task_.causal)
    if mask is None or not task_.shows_answers:
        return 0.0
    predicts, is_answer = _answers(evaluation_batch(spec, spec.length, spec.items))
    reached = mask
    for _layer in range(layers - 1):
        reached = reached | (reached.float() @ mask.float() > 0)
    return float((~(is_answer & reached).any(-1))[predicts].float().mean())


@lru_cache(MAX_CACHED)
def accuracy_with_guesses(spec: TrainSpec) -> float:
    """Return the accuracy of a model that gives all visible answers correctly and guesses those that the mask hides.

    A guess is one of the sequence's answers that the mask hides from the predicting token.

    Args:
        spec: the training run; its variant has a fixed mask, and its answers are symbols of the sequence.
    """
    batch = evaluation_batch(spec, spec.length, spec.items)
    mask = registry.from_word(spec.model.word).mask(spec.length, causal=task(spec.model.task).causal)
    assert mask is not None
    predicts, is_answer = _answers(batch)
    # ``is_hidden[s, i, t]``: whether token i of sequence s can attend to no token that holds token t's answer.
    is_hidden = mask.float() @ is_answer.mT.float() == 0
    is_repeated = (batch.targets[:, :, None] == batch.targets[:, None, :]).tril(-1).any(-1)
    choices = (is_hidden & (predicts & ~is_repeated)[:, None, :]).sum(-1)
    probability = torch.where(is_hidden.diagonal(dim1=-2, dim2=-1), 1 / choices, 1.0)
    return float(probability[predicts].mean())


def answer_places(spec: TrainSpec) -> list[tuple[int, int]]:
    """Return pairs of positions in the example sequence: a predicting token, and an earlier token that is its answer.

    Args:
        spec: the training run, of a causal task whose answers are symbols of the sequence.
    """
    predicts, is_answer = _answers(evaluation_batch(spec, spec.length, spec.items, sequences=1))
    return [(query, key) for query, key in (is_answer & predicts.unsqueeze(-1))[0].tril().nonzero().tolist()]


def answer_share(spec: TrainSpec, matrix: np.ndarray) -> float:
    """Return the share of its attention that a predicting token gives to the earlier tokens with its answer.

    The share is a mean over the predicting tokens of the example, one evaluation sequence. Weights are divided by the
    sum of their absolute values, so the share is from -1 to 1.

    Args:
        spec: the training run, of a causal task whose answers are symbols of the sequence.
        matrix: attention matrix on the example, ``[n, n]``.
    """
    weights = F.normalize(torch.from_numpy(matrix.astype("float32")), p=1.0, dim=-1)
    queries, keys = zip(*answer_places(spec), strict=True)
    return float(weights[queries, keys].sum()) / len(set(queries))


def _answers(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which tokens predict, ``bool [sequences, n]``, and which are their answers, ``bool [sequences, n, n]``."""
    return batch.targets != IGNORED, batch.inputs[:, None, :] == batch.targets[:, :, None]
