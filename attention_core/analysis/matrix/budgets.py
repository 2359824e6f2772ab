"""Matrices and errors of variants on one head of a short input, at every value of each variant's budget.

A budget is the setting that trades cost for accuracy, such as the width of a window.
"""

import numpy as np
import torch
from torch import Tensor

from attention_core import registry
from attention_core.analysis.matrix.compare import allowed_pairs, select_tokens
from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.errors import InputError
from attention_core.inputs.record import QKV
from attention_core.inputs.text import UNKNOWN
from attention_core.metrics.approximation import relative_error
from attention_core.variant import SOFTMAX

FAR_DISTANCE = 3
"""Minimum distance in tokens of a pair that counts as far."""
LONG_TEXT_TOKENS = 8192
"""Length of a long text, and of the first half of a text twice as long. Only costs are counted for them."""


class BudgetSteps(CompactRepr):
    """One variant at every value of its budget.

    Attributes:
        attentions: the variant at each value, the smallest first; only one if the budget is not an integer.
        weights: the variant's matrix at each of S values, ``float32 [S, n', n']`` for n' tokens shown; NaN for
            pairs that are not allowed.
        output_errors: relative error of each shown query's output at each value, ``float64 [S, n']``.
        growths: factor by which the multiply-adds of all heads grow at each value, if a text of
            ``LONG_TEXT_TOKENS`` tokens becomes twice as long.
    """

    attentions: tuple[Attention, ...]
    weights: np.ndarray
    output_errors: np.ndarray
    growths: tuple[float, ...]


class BudgetComparison(CompactRepr):
    """The matrices and errors of several variants on one head, at every value of each variant's budget.

    Attributes:
        tokens: labels of the n' tokens shown, which are those that the tokenizer did not add.
        variants: one entry per variant.
        far_query: index of the query, among the tokens shown, with the largest softmax weight on a key at
            least ``FAR_DISTANCE`` tokens away.
        unshown: share of each shown query's softmax weight on tokens that are not shown.
    """

    tokens: tuple[str, ...]
    variants: tuple[BudgetSteps, ...]
    far_query: int
    unshown: tuple[float, ...]


def compare_budgets(qkv: QKV, attentions: tuple[Attention, ...], *, head: int) -> BudgetComparison:
    """Compute each variant's matrix at every value of its budget, without the tokens that the tokenizer added.

    A budget goes from its lowest value up to the number of tokens, or until every pair is allowed.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attentions: the variants; the value of their budget is ignored.
        head: index of the head.

    Raises:
        InputError: if fewer than two tokens would be shown.
    """
    is_word = torch.tensor([not special for special in qkv.special])
    if int(is_word.sum()) < 2:
        raise InputError("A single token has no other token to attend to. Type at least two words.")
    softmax = registry.get(SOFTMAX)
    softmax_weights = softmax.weights(qkv.q, qkv.k)[head]  # [n, n]
    tokens = tuple(token for token, special in zip(qkv.tokens, qkv.special, strict=True) if not special)
    return BudgetComparison(
        tokens=tokens,
        variants=tuple(_budget_steps(qkv, attention, head, is_word) for attention in attentions),
        far_query=_far_query(select_tokens(softmax_weights, is_word), tokens),
        unshown=tuple(softmax_weights[is_word][:, ~is_word].sum(-1).tolist()),
    )


def variants_at_every_budget(attention: Attention, n: int) -> tuple[Attention, ...]:
    """Return a variant at each value of its budget, up to n or to the first value that allows every pair.

    A variant whose budget is not an integer, or that has no budget, is returned alone and unchanged.
    """
    budget = attention.variant.budget
    if budget is None or budget.kind != "int":
        return (attention,)
    variants = []
    for value in range(int(budget.low or 0), int(min(budget.high or n, n)) + 1):
        variants.append(attention.with_settings(**{budget.name: value}))
        mask = variants[-1].mask(n)
        if mask is not None and bool(mask.all()):
            break
    return tuple(variants)


def _budget_steps(qkv: QKV, attention: Attention, head: int, selected: Tensor) -> BudgetSteps:
    record, index = (qkv, head) if attention.variant.couples_heads else (qkv.of_head(head), 0)
    exact = attention.reference(record.q, record.k)[index] @ record.v[index]
    variants = variants_at_every_budget(attention, qkv.n)
    matrices, errors = [], []
    for variant in variants:
        weights = variant.weights(record.q, record.k)[index]
        allowed = allowed_pairs(record, variant, causal=False)[index]
        matrices.append(select_tokens(weights, selected).masked_fill(~allowed[selected][:, selected], torch.nan))
        output = weights @ variant.values(record.v)[index]
        errors.append(relative_error(output[selected, None], exact[selected, None]))  # of each row [1, d]

    def growth(variant: Attention) -> float:
        short, long = (
            variant.cost(n, qkv.q.shape[-1], heads=qkv.heads).multiply_adds
            for n in (LONG_TEXT_TOKENS, 2 * LONG_TEXT_TOKENS)
        )
        return long / short

    return BudgetSteps(
        attentions=variants,
        weights=torch.stack(matrices).numpy(),
        output_errors=torch.stack(errors).numpy(),
        growths=tuple(map(growth, variants)),
    )


def _far_query(weights: Tensor, tokens: tuple[str, ...]) -> int:
    """Return the index of the query with the largest weight on a far key.

    If any token is a known word, only known words count as queries.
    """
    positions = torch.arange(len(tokens))
    is_far = (positions[:, None] - positions).abs() >= min(FAR_DISTANCE, len(tokens) - 1)
    is_word = torch.tensor([token != UNKNOWN and any(map(str.isalnum, token)) for token in tokens])
    is_query = is_word if is_word.any() else ~is_word
    return int((weights * is_far * is_query[:, None]).amax(-1).argmax())
