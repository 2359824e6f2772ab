"""What does a budget buy? Variants on one head of a short input, each at every setting of its budget."""

import numpy as np
import torch
from torch import Tensor

from attention_core import registry
from attention_core.analysis.matrix.compare import keep_tokens, visible
from attention_core.compact_repr import CompactRepr
from attention_core.errors import InputError
from attention_core.inputs.record import QKV
from attention_core.metrics.error import relative_error
from attention_core.variant import SOFTMAX, Attention

FAR = 3
"""Tokens from which on a look is far."""


class Steps(CompactRepr):
    """One variant at every setting of its budget.

    Attributes:
        attentions: the variant at each setting, the smallest budget first; itself alone where that is no whole number.
        weights: its matrix at each, ``float32 [S, n', n']``; NaN where the pair may not look at each other.
        output_errors: at each, as ``output_error`` of ``Compared``.
        costs: at each, its multiply-adds as a share of softmax's, for all heads of the same tokens as the error.
    """

    attentions: tuple[Attention, ...]
    weights: np.ndarray
    output_errors: tuple[float, ...]
    costs: tuple[float, ...]


class Budgets(CompactRepr):
    """Variants on one head of one record, each at every setting of its budget.

    Attributes:
        n: the number of tokens that errors and costs are of, special ones included.
        tokens: those shown, n' of them.
        variants: one for each variant.
        uniform_error: as of ``Compared``: what the plain mean of v would be off by.
        farthest: the token whose largest weight on one far away is the largest in softmax's matrix.
    """

    n: int
    tokens: tuple[str, ...]
    variants: tuple[Steps, ...]
    uniform_error: float
    farthest: int


def at_every_budget(qkv: QKV, attentions: tuple[Attention, ...], *, head: int) -> Budgets:
    """Compute each variant's matrix at every setting of its budget, without the tokens that the tokenizer added.

    A budget goes from its lowest up to the number of tokens, or to where every pair may look.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attentions: the variants; what a budget is set to makes no difference.
        head: the head to look at.

    Raises:
        InputError: if fewer than two tokens would be shown.
    """
    kept = torch.tensor([not special for special in qkv.special])
    if int(kept.sum()) < 2:
        raise InputError("One token has nothing else to look at; type at least two words.")
    exact = registry.get(SOFTMAX)
    full = exact.weights(qkv.q, qkv.k)[head]  # [n, n]
    tokens = tuple(token for token, special in zip(qkv.tokens, qkv.special, strict=True) if not special)
    return Budgets(
        n=qkv.n,
        tokens=tokens,
        variants=tuple(_steps(qkv, attention, head, kept) for attention in attentions),
        uniform_error=float(relative_error(qkv.v[head].mean(-2).expand_as(qkv.v[head]), full @ qkv.v[head])),
        farthest=_farthest(keep_tokens(full, kept), tokens),
    )


def settings(attention: Attention, n: int) -> tuple[Attention, ...]:
    """A variant at every setting of its budget that differs on n tokens; itself alone where that is no whole number."""
    budget = attention.variant.budget
    if budget is None or budget.kind != "int":
        return (attention,)
    found = []
    for value in range(int(budget.low or 0), int(min(budget.high or n, n)) + 1):
        found.append(attention.with_settings(**{budget.name: value}))
        mask = found[-1].mask(n)
        if mask is not None and bool(mask.all()):
            break
    return tuple(found)


def _steps(qkv: QKV, attention: Attention, head: int, kept: Tensor) -> Steps:
    seen, place = (qkv, head) if attention.variant.couples_heads else (qkv.of_head(head), 0)
    reference = attention.reference(seen.q, seen.k)[place]
    v = seen.v[place]
    size = qkv.q.shape[-1]
    full = registry.get(SOFTMAX).cost(qkv.n, size, heads=qkv.heads).multiply_adds
    every = settings(attention, qkv.n)
    shown, errors = [], []
    for each in every:
        own = each.weights(seen.q, seen.k)[place]
        allowed = visible(seen, each, causal=False)[place]
        shown.append(keep_tokens(own, kept).masked_fill(~allowed[kept][:, kept], torch.nan))
        errors.append(float(relative_error(own @ each.values(seen.v)[place], reference @ v)))
    return Steps(
        attentions=every,
        weights=torch.stack(shown).numpy(),
        output_errors=tuple(errors),
        costs=tuple(each.cost(qkv.n, size, heads=qkv.heads).multiply_adds / full for each in every),
    )


def _farthest(weights: Tensor, tokens: tuple[str, ...]) -> int:
    """The token with the largest weight on one that is far, of those that are words where there are any."""
    place = torch.arange(len(tokens))
    far = (place[:, None] - place).abs() >= min(FAR, len(tokens) - 1)
    words = torch.tensor([any(map(str.isalnum, token)) for token in tokens])
    asks = words if words.any() else ~words
    return int((weights * far * asks[:, None]).amax(-1).argmax())
