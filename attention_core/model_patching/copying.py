"""The copy test: a model reads random tokens and then the same tokens again, which it can predict only by copying.

Source: Olsson and others, "In-context Learning and Induction Heads", 2022, arXiv 2209.11895.
"""

import torch
from torch import Tensor

from attention_core.errors import InputError
from attention_core.inputs.models import LoadedModel
from attention_core.model_patching.predictions import losses

COMMON_TOKENS = 8192
"""Number of first vocabulary entries to draw from. A byte-pair encoder creates these entries first, so they are
common."""


def repeated(loaded: LoadedModel, period: int, seed: int) -> list[int]:
    """Return random common tokens followed by the same tokens, ``2 * period`` in total, by the seed and the vocabulary.

    Raises:
        InputError: if ``period`` is less than two.
    """
    if period < 2:
        raise InputError("A copying test needs a text of at least two tokens, but this text has {n}.", n=period)
    special = loaded.tokenizer.get_added_tokens_decoder()
    ordinary = [i for i in range(min(COMMON_TOKENS, loaded.tokenizer.get_vocab_size())) if i not in special]
    index = torch.randint(len(ordinary), (period,), generator=torch.Generator().manual_seed(seed))
    tokens = [ordinary[i] for i in index.tolist()]
    return tokens + tokens


def copy_losses(loaded: LoadedModel, period: int, seed: int) -> tuple[Tensor, Tensor]:
    """Compute the losses, in nats, of the first occurrence (``[period - 1]``) and of the repetition (``[period - 1]``).

    The repetition's first token is left out, because no earlier token predicts that a repetition begins.

    Args:
        loaded: a decoder; inside ``swapped``, the swapped model is measured.
        period: number of tokens before they repeat.
        seed: seed of the tokens.
    """
    token_losses = losses(loaded, repeated(loaded, period, seed))
    return token_losses[: period - 1], token_losses[period:]
