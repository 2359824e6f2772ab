"""Settings and inputs of the delta rule, which erases what a key retrieves before it writes a value under that key."""

import torch
from torch import Tensor

from attention_core.ops.delta.fast_weights import Tokens
from attention_core.ops.softmax.masked import nonzero
from attention_core.settings import Params, param


class DeltaParams(Params):
    """Settings of the delta rule."""

    keys: str = param(
        "unit",
        choices=("unit", "exact"),
        help="unit: queries and keys are scaled to length 1. exact: queries and keys are divided by d^(1/4), where d "
        'is the head size. With "exact", each update solves the continuous form of the delta rule exactly (EFLA), '
        "which is stable for keys of any length.",
    )
    strength: float = param(
        1.0,
        low=0.05,
        high=2.0,
        step=0.05,
        help="How strongly each token changes the state, the matrix that stores the values. With unit keys, a "
        "strength of 1 erases the old value stored for the key, and a strength of 2 reverses its sign.",
    )


def delta_tokens(q: Tensor, k: Tensor, p: DeltaParams, gates: Tensor | None = None) -> Tokens:
    """Return the tokens of the delta rule for q and k, ``[..., n, d]``, with the logarithms of gates, if any."""
    q, k = normalised(q, p), normalised(k, p)
    beta = write_strength(k, p.keys, p.strength)
    return Tokens(q, k, beta, gates, beta)


def normalised(x: Tensor, p: DeltaParams) -> Tensor:
    """Return queries or keys as the rule uses them: of length one, or divided by ``d^¼``."""
    if p.keys == "unit":
        return unit(x)
    return x * x.shape[-1] ** -0.25


def unit(x: Tensor) -> Tensor:
    """Return vectors of length one, ``[..., n, d]``; zero vectors stay zero."""
    return x / nonzero(torch.linalg.vector_norm(x, dim=-1, keepdim=True))


def write_strength(k: Tensor, keys: str, strength: float) -> Tensor:
    """Return β for normalised keys, ``[..., n, 1]``: the constant, or ``(1 - e^{-η ‖k‖²}) / ‖k‖²`` for exact keys."""
    square = k.square().sum(-1, keepdim=True)
    if keys == "unit":
        return torch.full_like(square, strength)
    return torch.where(square == 0, strength, -torch.expm1(-strength * square) / nonzero(square))
