"""The choice of a query whose row of weights shows attention well, and the keys with the largest weights in that row.

A row can also be compared with another one; the keys are then those whose weights change most.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_core.analysis.matrix.compare import shown
from attention_core.inputs.record import QKV

SEEN = 0.005
"""Smallest weight, or difference of weights, that is shown; smaller ones would be rounded to 0.00."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """One key's entry in a row.

    Attributes:
        key: index of the key.
        weight: its weight, or the difference from its weight in another row.
    """

    key: int
    weight: float


def is_word(token: str) -> bool:
    """Return whether a token contains a letter or digit of any script, and so is more than punctuation."""
    return any(map(str.isalnum, token))


def occurs_once(tokens: Sequence[str]) -> list[bool]:
    """Return which tokens occur only once, ignoring case; frequently repeated words are less informative."""
    counts = Counter(token.casefold() for token in tokens)
    return [counts[token.casefold()] == 1 for token in tokens]


def of_record(weights: np.ndarray, qkv: QKV, *, special: bool) -> int | None:
    """Return the query that ``telling_query`` selects in a record's softmax, preferring words that occur only once.

    Args:
        weights: softmax's matrix of the tokens shown; see ``telling_query``.
        qkv: the record.
        special: whether tokens that the tokenizer added are shown; they do not count as words.
    """
    if qkv.crosses:  # No key is the query itself, so the query with the largest weight is selected.
        return int(np.nan_to_num(weights).max(-1).argmax())
    kept = shown(qkv, special=special).tolist()
    tokens = [token for token, here in zip(qkv.tokens, kept, strict=True) if here]
    added = [special and flag for flag, here in zip(qkv.special, kept, strict=True) if here]
    content = [is_word(token) and not flag for token, flag in zip(tokens, added, strict=True)]
    return telling_query(weights, content, occurs_once(tokens))


def telling_query(weights: np.ndarray, content: Sequence[bool], rare: Sequence[bool] = ()) -> int | None:
    """Return the query with the highest weight on one other word, to be shown first.

    The score of a query is its largest weight minus the uniform weight over the keys it may attend to, because early
    queries of a causal matrix have large weights anyway. Weights on the query itself, on tokens that are not words and
    on the first token are ignored; heads often use the first token as a sink.

    Args:
        weights: softmax's matrix, ``[n, n]``; NaN for pairs that are not allowed.
        content: per token, whether it is a word.
        rare: per token, whether it is preferred as the query.

    Returns:
        The index of the query, the first one for ties; None if no word may attend to another.
    """
    words = np.asarray(content, dtype=bool)
    seen = np.isfinite(weights)
    above = np.where(seen, weights, 0.0) - 1.0 / np.maximum(seen.sum(-1, keepdims=True), 1)
    pairs = seen & words[:, None] & words
    np.fill_diagonal(pairs, False)
    pairs[:, 0] = False
    if rare and (first := pairs & np.asarray(rare)[:, None]).any():
        pairs = first
    if not pairs.any():
        return None
    return int(np.argmax(np.where(pairs, above, -np.inf).max(-1)))


def heaviest(row: np.ndarray, most: int) -> tuple[Share, ...]:
    """Return the keys with the largest weights, the heaviest first; see ``most_changed`` for the arguments."""
    sizes = np.nan_to_num(row, nan=0.0).astype(float)
    order = np.argsort(-sizes, kind="stable")[:most]
    return tuple(Share(key=int(j), weight=float(sizes[j])) for j in order if sizes[j] >= SEEN)


def most_changed(difference: np.ndarray, most: int) -> tuple[tuple[Share, ...], tuple[Share, ...]]:
    """Return the keys with the largest losses and gains compared with a reference, the largest changes first.

    Args:
        difference: the row minus the reference's row, ``[n]``; NaN for hidden pairs.
        most: maximum number of losses and of gains; changes below ``SEEN`` are left out.
    """
    lost = tuple(Share(key=each.key, weight=-each.weight) for each in heaviest(-difference, most))
    return lost, heaviest(difference, most)
