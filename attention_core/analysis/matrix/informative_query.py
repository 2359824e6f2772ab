"""Chooses the query that a page shows first, and finds the keys to which a query gives the most weight.

The chosen query has a large weight on another word. If a query's weights are compared with a reference, the module
finds the keys whose weights differ most.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_core.analysis.matrix.compare import shown_tokens
from attention_core.inputs.record import QKV

MIN_SHOWN_WEIGHT = 0.005
"""Smallest weight, or difference of weights, that is shown; smaller ones would be rounded to 0.00."""


@dataclass(frozen=True, kw_only=True)
class KeyWeight:
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


def informative_query_of_record(weights: np.ndarray, qkv: QKV, *, special: bool) -> int | None:
    """Return the query that ``informative_query`` selects in a record's softmax, preferring words that occur only once.

    Args:
        weights: softmax's matrix of the tokens shown; see ``informative_query``.
        qkv: the record.
        special: whether tokens that the tokenizer added are shown; they do not count as words.
    """
    if qkv.crosses:  # keys of another sequence: no weight is on the query itself
        return int(np.nan_to_num(weights).max(-1).argmax())
    is_shown = shown_tokens(qkv, special=special).tolist()
    tokens = [token for token, shown_ in zip(qkv.tokens, is_shown, strict=True) if shown_]
    is_special = [special and flag for flag, shown_ in zip(qkv.special, is_shown, strict=True) if shown_]
    is_word_ = [is_word(token) and not flag for token, flag in zip(tokens, is_special, strict=True)]
    return informative_query(weights, is_word_, occurs_once(tokens))


def informative_query(weights: np.ndarray, is_word: Sequence[bool], is_preferred: Sequence[bool] = ()) -> int | None:
    """Return the query with the highest weight on one other word, to be shown first.

    The score of a query is its largest weight minus the uniform weight over the keys it may attend to, because early
    queries of a causal matrix have large weights anyway. Weights on the query itself, on tokens that are not words and
    on the first token are ignored; heads often use the first token as a sink.

    Args:
        weights: softmax's matrix, ``[n, n]``; NaN for pairs that are not allowed.
        is_word: per token, whether it is a word.
        is_preferred: per token, whether it is preferred as the query.

    Returns:
        The index of the query, the first one for ties; None if no word may attend to another.
    """
    word_mask = np.asarray(is_word, dtype=bool)
    allowed = np.isfinite(weights)
    above_uniform = np.where(allowed, weights, 0.0) - 1.0 / np.maximum(allowed.sum(-1, keepdims=True), 1)
    pairs = allowed & word_mask[:, None] & word_mask
    np.fill_diagonal(pairs, False)
    pairs[:, 0] = False
    if is_preferred and (preferred := pairs & np.asarray(is_preferred)[:, None]).any():
        pairs = preferred
    if not pairs.any():
        return None
    return int(np.argmax(np.where(pairs, above_uniform, -np.inf).max(-1)))


def heaviest_keys(row: np.ndarray, max_keys: int) -> tuple[KeyWeight, ...]:
    """Return the keys with the largest weights of a row, ``[n]``, at most ``max_keys``, the heaviest first.

    NaN counts as zero, and weights below ``MIN_SHOWN_WEIGHT`` are left out.
    """
    weights = np.nan_to_num(row, nan=0.0).astype(float)
    order = np.argsort(-weights, kind="stable")[:max_keys]
    return tuple(KeyWeight(key=int(j), weight=float(weights[j])) for j in order if weights[j] >= MIN_SHOWN_WEIGHT)


def most_changed_keys(difference: np.ndarray, max_keys: int) -> tuple[tuple[KeyWeight, ...], tuple[KeyWeight, ...]]:
    """Return the keys with the largest losses and gains compared with a reference, the largest changes first.

    Args:
        difference: the row minus the reference's row, ``[n]``; NaN for hidden pairs.
        max_keys: maximum number of losses and of gains; changes below ``MIN_SHOWN_WEIGHT`` are left out.
    """
    losses = tuple(KeyWeight(key=each.key, weight=-each.weight) for each in heaviest_keys(-difference, max_keys))
    return losses, heaviest_keys(difference, max_keys)
