"""A decoder's loss for each token of a text, given the tokens before it, and the perplexity of the whole text."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.errors import InputError, ModelError, check_range
from attention_core.formatting import N_
from attention_core.inputs.models import LoadedModel

ROWS = 128
"""Positions whose logits are computed in one step; with 49,152 words these take 24 MiB."""


def unembedding(loaded: LoadedModel) -> Tensor:
    """Return the matrix ``[words, size]`` that turns hidden states into logits.

    Raises:
        ModelError: if the model predicts no next token, or its output layer is not its embedding.
    """
    config = loaded.model.config.get_text_config()
    if not loaded.info.causal or not getattr(config, "tie_word_embeddings", False):
        raise ModelError(
            "{title} was loaded without a layer that predicts the next token. Choose SmolLM2.", title=loaded.info.title
        )
    return loaded.model.get_input_embeddings().weight


def losses(loaded: LoadedModel, ids: Sequence[int]) -> Tensor:
    """Compute the loss of each token but the first, given the tokens before it, in nats, float32 ``[n - 1]``.

    Args:
        loaded: a decoder; inside ``swapped``, the swapped model is measured.
        ids: at least two tokens, as numbers in the model's vocabulary.

    Raises:
        InputError: if there are fewer tokens, or a token is not in the vocabulary.
        ModelError: as in ``unembedding``.
    """
    if len(ids) < 2:
        raise InputError("With one token, there is no next token to predict. Use at least two tokens.")
    weight = unembedding(loaded)
    for token in ids:
        check_range(N_("token number"), token, 0, len(weight) - 1)
    tokens = torch.tensor(list(ids), device=loaded.model.device)
    with torch.no_grad():
        hidden = loaded.model(input_ids=tokens[None]).last_hidden_state[0]
        parts = [
            F.cross_entropy(rows @ weight.mT, next_tokens, reduction="none")
            for rows, next_tokens in zip(hidden[:-1].split(ROWS), tokens[1:].split(ROWS), strict=True)
        ]
    return torch.cat(parts)


def perplexity(losses: Tensor | Sequence[float]) -> float:
    """Return ``exp`` of the mean loss in nats; infinite if a float would overflow, NaN for no losses or NaN."""
    mean = float(torch.as_tensor(losses, dtype=torch.float64).mean())
    return math.inf if mean >= 700 else math.exp(mean)
