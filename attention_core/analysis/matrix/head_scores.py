"""Five scores for each attention head, such as its entropy, computed from its softmax weights on one input."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.analysis.matrix.compare import shown_tokens
from attention_core.analysis.matrix.miniatures import softmax_matrices
from attention_core.formatting import N_
from attention_core.inputs.labels import CONTINUATION
from attention_core.inputs.record import QKV
from attention_core.metrics.entropy import entropy
from attention_core.metrics.passport import TableRecord, mean_distance, table_field

LOWEST_FIRST = ("entropy", "distance")
"""Scores for which small values are listed first: low entropy (concentrated) and small distance (local)."""


@dataclass(frozen=True, kw_only=True)
class HeadScores(TableRecord):
    """The scores of one head's softmax on one input; NaN if the input does not allow the score.

    With keys of another sequence, only the entropy is defined.

    Attributes:
        layer: layer, counted from 0.
        head: head, counted from 0.
        induction: weight that a repeated token gives to the tokens after its earlier occurrences, averaged over all
            such queries, from 0 to 1; NaN if no token repeats. The prefix-matching score of Olsson et al. 2022 (arXiv
            2209.11895).
        previous: weight on the previous token, averaged over all queries except the first.
        sink: weight on the first token, averaged over the same queries.
        entropy: entropy in nats, averaged over queries.
        distance: mean of ``|i - j|`` in tokens, weighted by the attention weights; small for a local head.
    """

    layer: int
    head: int
    induction: float = table_field(label=N_("induction"), format="%.2f")
    previous: float = table_field(label=N_("previous token"), format="%.2f")
    sink: float = table_field(label=N_("first-token sink"), format="%.2f")
    entropy: float = table_field(label=N_("entropy (nats)"), format="%.2f")
    distance: float = table_field(label=N_("mean distance (tokens)"), format="%.2f")


def head_scores(layers: Sequence[QKV], *, causal: bool, special: bool = True) -> tuple[HeadScores, ...]:
    """Compute the scores of every head of every layer.

    Args:
        layers: one record per layer, of the same tokens.
        causal: whether future keys are hidden.
        special: whether tokens that the tokenizer added are counted; if not, rows are rescaled to keep their absolute
            sum.

    Returns:
        The scores in the order of layers and heads.
    """
    is_shown = shown_tokens(layers[0], special=special).tolist()
    shown_words = [word for word, is_kept in zip(layers[0].tokens, is_shown, strict=True) if is_kept]
    result, names = [], tuple(HeadScores.columns())
    for layer, matrices in enumerate(softmax_matrices(layers, causal=causal, special=special)):
        weights = matrices.double()
        undefined = weights.new_full(weights.shape[:-2], math.nan)
        scores = torch.stack(
            [undefined, undefined, undefined, entropy(weights).mean(-1), undefined]
            if layers[0].crosses
            else [
                induction(weights, shown_words),
                weights.diagonal(-1, -2, -1).mean(-1),
                weights[:, 1:, 0].mean(-1),
                entropy(weights).mean(-1),
                mean_distance(weights),
            ],
            -1,
        ).tolist()
        result += [
            HeadScores(layer=layer, head=head, **dict(zip(names, row, strict=True))) for head, row in enumerate(scores)
        ]
    return tuple(result)


def induction(weights: Tensor, tokens: Sequence[str]) -> Tensor:
    """Compute the weight of repeated tokens on the tokens after their earlier occurrences, ``[...]``; NaN without any.

    Tokens that only continue a character do not count as repeated. If a token follows itself directly, the token after
    its earlier occurrence is the query itself, which does not count either.

    Args:
        weights: ``[..., n, n]``.
        tokens: one label per position.
    """
    positions_after: dict[str, list[int]] = {}
    queries: list[int] = []
    keys: list[int] = []
    for i, token in enumerate(tokens):
        later = [j for j in positions_after.get(token, ()) if j < i]
        queries += [i] * len(later)
        keys += later
        if token != CONTINUATION:
            positions_after.setdefault(token, []).append(i + 1)
    if not queries:
        return weights.new_full(weights.shape[:-2], math.nan)
    return weights[..., queries, keys].sum(-1) / len({*queries})


def ranked(scores: Sequence[HeadScores], by: str) -> tuple[HeadScores, ...]:
    """Return the heads sorted by one score, the most distinctive first and NaN last."""

    def place(each: HeadScores) -> tuple[bool, float]:
        value: float = getattr(each, by)
        return math.isnan(value), value if by in LOWEST_FIRST else -value

    return tuple(sorted(scores, key=place))
