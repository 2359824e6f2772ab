"""The copy test: random tokens, said twice; what a model cannot look up again it cannot say again.

Source: Olsson and others, "In-context Learning and Induction Heads", 2022, arXiv 2209.11895.
"""

import torch
from torch import Tensor

from attention_core.errors import InputError
from attention_core.inputs.models import Loaded
from attention_core.model_patching.predictions import losses

COMMON = 8192
"""The tokens drawn from: the first of the vocabulary, which a byte-pair encoder made first and so are common pieces."""


def repeated(loaded: Loaded, period: int, seed: int) -> list[int]:
    """Random common tokens and the same again, ``2 * period`` of them; a pure function of the seed.

    Raises:
        InputError: if there are fewer than two to repeat.
    """
    if period < 2:
        raise InputError("A text of {n} token has nothing to copy; repeat at least two.", n=period)
    special = loaded.tokenizer.get_added_tokens_decoder()
    ordinary = [i for i in range(min(COMMON, loaded.tokenizer.get_vocab_size())) if i not in special]
    drawn = torch.randint(len(ordinary), (period,), generator=torch.Generator().manual_seed(seed))
    once = [ordinary[i] for i in drawn.tolist()]
    return once + once


def copy_losses(loaded: Loaded, period: int, seed: int) -> tuple[Tensor, Tensor]:
    """The losses, in nats, of the first time (``[period - 1]``) and of the second (``[period - 1]``).

    The second time begins with the second token: that a repetition begins, the first cannot tell.

    Args:
        loaded: a decoder; inside ``surgery.swapped`` it is that one which reads.
        period: tokens until they repeat.
        seed: of the tokens.
    """
    found = losses(loaded, repeated(loaded, period, seed))
    return found[: period - 1], found[period:]
