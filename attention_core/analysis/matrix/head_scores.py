"""What does each head look for? Softmax of every layer and head in five numbers, on the input at hand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.analysis.matrix.compare import shown
from attention_core.analysis.matrix.miniatures import of_every_head
from attention_core.formatting import N_
from attention_core.inputs.labels import CONTINUED
from attention_core.inputs.record import QKV
from attention_core.metrics.entropy import entropy
from attention_core.metrics.passport import Numbers, mean_distance, number

LOWEST_FIRST = ("entropy", "distance")
"""Scores of which a small one sets a head apart: decided rather than spread out, near rather than far."""


@dataclass(frozen=True, kw_only=True)
class HeadScores(Numbers):
    """One head's softmax on one input; NaN where the input has nothing to tell by.

    Attributes:
        layer: from 0.
        head: from 0.
        induction: weight that a repeated token gives to whatever followed its earlier occurrences, the mean over all
            such queries, from 0 to 1; NaN where no token repeats. The prefix-matching score of Olsson et al. 2022
            (arXiv 2209.11895).
        previous: weight on the token just before, the mean over all queries but the first.
        sink: weight on the first token, likewise.
        entropy: in nats, the mean over queries.
        distance: ``|i - j|`` in tokens, the mean over the whole mass; small for a head that stays local.
    """

    layer: int
    head: int
    induction: float = number(label=N_("induction"), format="%.3f")
    previous: float = number(label=N_("previous token"), format="%.3f")
    sink: float = number(label=N_("first-token sink"), format="%.3f")
    entropy: float = number(label=N_("entropy (nats)"), format="%.3f")
    distance: float = number(label=N_("mean distance (tokens)"), format="%.1f")


def head_scores(layers: Sequence[QKV], *, causal: bool, special: bool = True) -> tuple[HeadScores, ...]:
    """Score every head of every layer.

    Args:
        layers: one record per layer, of the same tokens.
        causal: whether the future is hidden.
        special: whether tokens the tokenizer added are counted; without them rows keep their total mass.

    Returns:
        Layer by layer, head by head.
    """
    kept = shown(layers[0], special=special).tolist()
    words = [word for word, keep in zip(layers[0].tokens, kept, strict=True) if keep]
    found, names = [], tuple(HeadScores.columns())
    for layer, single in enumerate(of_every_head(layers, causal=causal, special=special)):
        weights = single.double()
        scores = torch.stack(
            [
                induction(weights, words),
                weights.diagonal(-1, -2, -1).mean(-1),
                weights[:, 1:, 0].mean(-1),
                entropy(weights).mean(-1),
                mean_distance(weights),
            ],
            -1,
        ).tolist()
        found += [
            HeadScores(layer=layer, head=head, **dict(zip(names, row, strict=True))) for head, row in enumerate(scores)
        ]
    return tuple(found)


def induction(weights: Tensor, tokens: Sequence[str]) -> Tensor:
    """Weight of repeated tokens on what followed their earlier occurrences, ``[...]``; NaN where none repeats.

    Pieces of a character without a label of their own repeat nothing; a token is never what followed itself.

    Args:
        weights: ``[..., n, n]``.
        tokens: one label per position.
    """
    following: dict[str, list[int]] = {}
    queries: list[int] = []
    keys: list[int] = []
    for i, token in enumerate(tokens):
        after = [j for j in following.get(token, ()) if j < i]
        queries += [i] * len(after)
        keys += after
        if token != CONTINUED:
            following.setdefault(token, []).append(i + 1)
    if not queries:
        return weights.new_full(weights.shape[:-2], math.nan)
    return weights[..., queries, keys].sum(-1) / len({*queries})


def ranked(scores: Sequence[HeadScores], by: str) -> tuple[HeadScores, ...]:
    """Heads by one of their scores: those that it sets apart first, those it says nothing of last."""

    def place(each: HeadScores) -> tuple[bool, float]:
        value: float = getattr(each, by)
        return math.isnan(value), value if by in LOWEST_FIRST else -value

    return tuple(sorted(scores, key=place))
