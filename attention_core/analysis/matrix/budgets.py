"""Variants on one head of a short input, each measured at every value of its budget.

A budget is the setting that trades cost for accuracy, such as the width of a window.
"""

from operator import truediv

import numpy as np
import torch
from torch import Tensor

from attention_core import registry
from attention_core.analysis.matrix.compare import keep_tokens, visible
from attention_core.compact_repr import CompactRepr
from attention_core.errors import InputError
from attention_core.inputs.record import QKV
from attention_core.metrics.approximation import relative_error
from attention_core.variant import SOFTMAX, Attention

FAR = 3
"""Minimum distance in tokens of a pair that counts as far."""
LONG = 8192
"""A long text's length. Only the cost formulas are evaluated at it; no text of this length is read."""


class Steps(CompactRepr):
    """One variant at every value of its budget.

    Attributes:
        attentions: the variant at each value, the smallest first; only one if the budget is not an integer.
        weights: its matrix at each value, ``float32 [S, n', n']``; NaN for pairs that are not allowed.
        output_errors: error at each value; see ``output_error`` of ``Compared``.
        costs: multiply-adds at each value as a share of softmax's, for all heads and all n tokens.
        long_costs: the same for ``LONG`` tokens.
    """

    attentions: tuple[Attention, ...]
    weights: np.ndarray
    output_errors: tuple[float, ...]
    costs: tuple[float, ...]
    long_costs: tuple[float, ...]


class Budgets(CompactRepr):
    """The matrices and errors of several variants on one head, at every value of each variant's budget.

    Attributes:
        n: number of tokens used for errors and costs, special ones included.
        tokens: labels of the n' tokens shown, which are those that the tokenizer did not add.
        variants: one entry per variant.
        uniform_error: error of the mean of v; see ``Compared``.
        farthest: index of the query, among the tokens shown, with the largest softmax weight on a far key; see ``FAR``.
    """

    n: int
    tokens: tuple[str, ...]
    variants: tuple[Steps, ...]
    uniform_error: float
    farthest: int


def at_every_budget(qkv: QKV, attentions: tuple[Attention, ...], *, head: int) -> Budgets:
    """Compute each variant's matrix at every value of its budget, without the tokens that the tokenizer added.

    A budget goes from its lowest value up to the number of tokens, or until every pair is allowed.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attentions: the variants; the value of their budget is ignored.
        head: index of the head.

    Raises:
        InputError: if fewer than two tokens would be shown.
    """
    kept = torch.tensor([not special for special in qkv.special])
    if int(kept.sum()) < 2:
        raise InputError("A single token has no other token to attend to. Type at least two words.")
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
    """Return a variant at each value of its budget, up to n or to the first value that allows every pair.

    A variant whose budget is not an integer, or that has no budget, is returned alone and unchanged.
    """
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
    every = settings(attention, qkv.n)
    shown, errors = [], []
    for each in every:
        own = each.weights(seen.q, seen.k)[place]
        allowed = visible(seen, each, causal=False)[place]
        shown.append(keep_tokens(own, kept).masked_fill(~allowed[kept][:, kept], torch.nan))
        errors.append(float(relative_error(own @ each.values(seen.v)[place], reference @ v)))

    def cost(own: Attention, n: int) -> float:
        counted = (each.cost(n, qkv.q.shape[-1], heads=qkv.heads) for each in (own, registry.get(SOFTMAX)))
        return truediv(*(each.multiply_adds for each in counted))

    return Steps(
        attentions=every,
        weights=torch.stack(shown).numpy(),
        output_errors=tuple(errors),
        costs=tuple(cost(each, qkv.n) for each in every),
        long_costs=tuple(cost(each, LONG) for each in every),
    )


def _farthest(weights: Tensor, tokens: tuple[str, ...]) -> int:
    """Return the index of the query with the largest weight on a far key, among the words if there are any."""
    place = torch.arange(len(tokens))
    far = (place[:, None] - place).abs() >= min(FAR, len(tokens) - 1)
    words = torch.tensor([any(map(str.isalnum, token)) for token in tokens])
    asks = words if words.any() else ~words
    return int((weights * far * asks[:, None]).amax(-1).argmax())
