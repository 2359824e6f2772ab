"""The mask of a sparse variant, made from its primitives: the named rules, each of which allows some pairs."""

from collections.abc import Callable
from functools import partial, reduce

import torch
from torch import Tensor

from attention_core.settings import Params

Parts = Callable[..., dict[str, Tensor]]
"""``(n, p, device, *, causal) -> {name: bool [n, n]}``, the pairs of each rule; later keys are hidden afterwards."""


def mask_and_primitives(parts: Parts) -> tuple[Callable[..., Tensor], Parts]:
    """Return ``mask(n, p, *, causal)`` and ``primitives(q, k, p, *, causal)`` for the rules in ``parts``."""
    return partial(_mask, parts), partial(_primitives, parts)


def union_of(primitives: Parts) -> Callable[..., Tensor]:
    """Return ``pattern(q, k, p, *, causal)`` of a variant: the pairs that at least one of its named rules allows."""
    return lambda q, k, p, *, causal: reduce(torch.logical_or, primitives(q, k, p, causal=causal).values())


def _mask(parts: Parts, n: int, p: Params, device: torch.device | None = None, *, causal: bool) -> Tensor:
    """Return the pairs that some rule allows, ``bool [n, n]``; if causal, without later keys."""
    found = reduce(torch.logical_or, parts(n, p, device, causal=causal).values())
    return found.tril() if causal else found


def _primitives(parts: Parts, q: Tensor, k: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
    """Return the pairs that each rule allows, ``bool [n, n]`` each; if causal, without later keys."""
    found = parts(q.shape[-2], p, q.device, causal=causal)
    return {name: part.tril() if causal else part for name, part in found.items()}
