"""Softmax over pairs that are known in advance: all of it follows from what allows a pair, by name."""

from collections.abc import Callable
from functools import partial, reduce

import torch
from torch import Tensor

from attention_core.ops.softmax.masked import masked_softmax, scores
from attention_core.settings import Params

Parts = Callable[..., dict[str, Tensor]]
"""``(n, p, device, *, causal) -> {name: bool [n, n]}``: pairs by what allows them; later keys are hidden afterwards."""


def restricted_to(parts: Parts) -> tuple[Callable[..., Tensor], Parts, Callable[..., Tensor]]:
    """``mask(n, p)``, ``primitives(q, k, p)`` and ``weights(q, k, p)`` of a variant, each ``causal`` or not."""
    return partial(_mask, parts), partial(_primitives, parts), partial(_weights, parts)


def _mask(parts: Parts, n: int, p: Params, device: torch.device | None = None, *, causal: bool) -> Tensor:
    """The pairs that some part allows, ``bool [n, n]``; when causal without the keys later than their query."""
    found = reduce(torch.logical_or, parts(n, p, device, causal=causal).values())
    return found.tril() if causal else found


def _primitives(parts: Parts, q: Tensor, k: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
    """The same by what allows the pairs, ``bool [n, n]`` each."""
    found = parts(q.shape[-2], p, q.device, causal=causal)
    return {name: part.tril() if causal else part for name, part in found.items()}


def _weights(parts: Parts, q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Softmax over the pairs that some part allows, ``[..., n, n]``."""
    return masked_softmax(scores(q, k), _mask(parts, q.shape[-2], p, q.device, causal=causal))
