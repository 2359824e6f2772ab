"""Steps over chunks of tokens in turn: what is made of tokens, however wide, never exists for all of them at once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Step = Callable[..., tuple[Any, Any]]
"""``(state, *chunks) -> (what is made of the chunk, next state)``."""


def by_chunks(step: Step, state: Any, *tensors: Tensor, size: int, reverse: bool = False) -> tuple[list[Any], Any]:  # noqa: ANN401 - each algorithm has its own state
    """Walk over all tokens; the backward works out each chunk again from the state before it.

    Args:
        step: takes the state and one chunk of every tensor; what it closes over is constant.
        state: before the first chunk.
        tensors: ``[..., n, *]`` each, cut along the tokens.
        size: tokens per chunk; the last may have fewer.
        reverse: whether to walk from the last token to the first: each chunk arrives in that order, and what is made
            of it is turned round again.

    Returns:
        What the steps made, one item per chunk in the order of the tokens, and the last state.
    """
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        step = partial(checkpoint, step, use_reentrant=False, preserve_rng_state=False)
    # Split once (not sliced chunk by chunk), so that backward gathers each gradient in one piece.
    chunks = list(zip(*(x.split(size, -2) for x in tensors), strict=True))
    made = []
    for parts in reversed(chunks) if reverse else chunks:
        out, state = step(state, *((x.flip(-2) for x in parts) if reverse else parts))
        made.append(out.flip(-2) if reverse else out)
    return made[::-1] if reverse else made, state
