"""Which query tells the most, and what a variant takes from its keys and gives them?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_core.analysis.matrix.compare import shown
from attention_core.inputs.record import QKV

SEEN = 0.005
"""A weight, or a difference of weights, that is told: smaller ones would be written as 0.00."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """One key's part in a row.

    Attributes:
        key: its place.
        weight: its weight, or what that is more than another's.
    """

    key: int
    weight: float


def is_word(token: str) -> bool:
    """Whether a token holds a letter or a digit of any script, so that it is more than punctuation."""
    return any(map(str.isalnum, token))


def once(tokens: Sequence[str]) -> list[bool]:
    """Which tokens stand only once, whatever their capitals: the words a text repeats most say least."""
    counts = Counter(token.casefold() for token in tokens)
    return [counts[token.casefold()] == 1 for token in tokens]


def of_record(weights: np.ndarray, qkv: QKV, *, special: bool) -> int | None:
    """The telling query of softmax's matrix of a record, where words stand that are asked about only once if any are.

    Args:
        weights: as of ``telling_query``, of the tokens shown.
        qkv: the record.
        special: whether tokens the tokenizer added are shown; they are no words.
    """
    kept = shown(qkv, special=special).tolist()
    tokens = [token for token, here in zip(qkv.tokens, kept, strict=True) if here]
    added = [special and flag for flag, here in zip(qkv.special, kept, strict=True) if here]
    content = [is_word(token) and not flag for token, flag in zip(tokens, added, strict=True)]
    return telling_query(weights, content, once(tokens))


def telling_query(weights: np.ndarray, content: Sequence[bool], rare: Sequence[bool] = ()) -> int | None:
    """The query that looks hardest at one other word: a first row to look at.

    Each query's largest weight counts as far as it is more than an even share of what the query sees, which early
    queries of a causal matrix have anyway. Left out are its weight on itself, on what is no word, and on the first
    token, where heads put what they have no use for.

    Args:
        weights: ``[n, n]``, softmax's; NaN where a pair may not look.
        content: per token, whether it is a word.
        rare: per token, whether it is asked about before those that are not.

    Returns:
        The query, the first of several alike; None where no word can look at another.
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
    """The keys that a query weighs most, the heaviest first; arguments as of ``most_changed``."""
    return _largest(row, most)


def most_changed(difference: np.ndarray, most: int) -> tuple[tuple[Share, ...], tuple[Share, ...]]:
    """The keys that lost and that gained most against a reference, the largest changes first.

    Args:
        difference: ``[n]``, the row minus the reference's; NaN where neither may look.
        most: of each at most; what is smaller than ``SEEN`` is left out.
    """
    lost = tuple(Share(key=each.key, weight=-each.weight) for each in _largest(-difference, most))
    return lost, _largest(difference, most)


def _largest(row: np.ndarray, most: int) -> tuple[Share, ...]:
    sizes = np.nan_to_num(row, nan=0.0).astype(float)
    order = np.argsort(-sizes, kind="stable")[:most]
    return tuple(Share(key=int(j), weight=float(sizes[j])) for j in order if sizes[j] >= SEEN)
