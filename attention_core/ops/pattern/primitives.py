"""The mask of a sparse variant, made from its primitives: named rules, such as a window, that each allow some pairs."""

from collections.abc import Callable
from functools import partial, reduce

import torch
from torch import Tensor

from attention_core.settings import Params

RuleMasks = Callable[..., dict[str, Tensor]]
"""``(n, p, device, *, causal) -> {name: bool [n, n]}``, the pairs of each rule.

They need not be causal: ``mask_and_primitives`` removes later keys.
"""


def mask_and_primitives(rule_masks: RuleMasks) -> tuple[Callable[..., Tensor], RuleMasks]:
    """Return ``mask(n, p, *, causal)`` and ``primitives(q, k, p, *, causal)`` for the rules in ``rule_masks``."""
    return partial(_mask, rule_masks), partial(_primitives, rule_masks)


def pattern_from_primitives(primitives: RuleMasks) -> Callable[..., Tensor]:
    """Return ``pattern(q, k, p, *, causal)`` of a variant: the pairs that at least one of its named rules allows."""
    return lambda q, k, p, *, causal: reduce(torch.logical_or, primitives(q, k, p, causal=causal).values())


def _mask(rule_masks: RuleMasks, n: int, p: Params, device: torch.device | None = None, *, causal: bool) -> Tensor:
    """Return the pairs that some rule allows, ``bool [n, n]``; if causal, without later keys."""
    masks = reduce(torch.logical_or, rule_masks(n, p, device, causal=causal).values())
    return masks.tril() if causal else masks


def _primitives(rule_masks: RuleMasks, q: Tensor, k: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
    """Return the pairs that each rule allows, ``bool [n, n]`` each; if causal, without later keys."""
    masks = rule_masks(q.shape[-2], p, q.device, causal=causal)
    return {name: part.tril() if causal else part for name, part in masks.items()}
