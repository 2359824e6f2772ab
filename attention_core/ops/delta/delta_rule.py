"""The delta rule's settings: before a value is written, what its key reads now is erased, as strongly as is set."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.ops.delta.fast_weights import Tokens
from attention_core.ops.softmax.masked import nonzero
from attention_core.settings import Params, param


@dataclass(frozen=True, kw_only=True)
class DeltaParams(Params):
    """Settings of the delta rule."""

    keys: str = param(
        "unit",
        choices=("unit", "exact"),
        help="Queries and keys of length one, or q and k over d^(1/4) with the exact step of the differential equation "
        "(EFLA), which no key makes unstable.",
    )
    strength: float = param(
        1.0,
        low=0.05,
        high=2.0,
        step=0.05,
        help="How much is replaced of what a key reads: at 1 and unit keys all of it, at 2 it is turned over.",
    )


def delta_tokens(q: Tensor, k: Tensor, p: DeltaParams, gates: Tensor | None = None) -> Tokens:
    """Tokens as the delta rule takes them, ``[..., n, d]`` each, with the logarithms of their gates if they have."""
    q, k = normalised(q, p), normalised(k, p)
    beta = write_strength(k, p.keys, p.strength)
    return Tokens(q, k, beta, gates, beta)


def normalised(x: Tensor, p: DeltaParams) -> Tensor:
    """Queries or keys as the rule takes them: of length one, or so that their product is the scaled logit."""
    if p.keys == "unit":
        return unit(x)
    return x * x.shape[-1] ** -0.25


def unit(x: Tensor) -> Tensor:
    """Vectors of length one, ``[..., n, d]``; zeros stay."""
    return x / nonzero(torch.linalg.vector_norm(x, dim=-1, keepdim=True))


def write_strength(k: Tensor, keys: str, strength: float) -> Tensor:
    """β of every key as it is taken, ``[..., n, 1]``: the constant, or ``(1 - e^{-η ‖k‖²}) / ‖k‖²``."""
    square = k.square().sum(-1, keepdim=True)
    if keys == "unit":
        return torch.full_like(square, strength)
    return torch.where(square == 0, strength, -torch.expm1(-strength * square) / nonzero(square))
