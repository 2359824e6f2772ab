"""Effects of averaging tokens before attention: how many tokens an average combines, and what leaks through it.

A leak means that an earlier output depends on a later token. An average is called a mixture: it is a pooled key, or a
query that several tokens share. A provenance ``[m, n]`` holds the share of each token in each mixture. All functions
take numpy arrays of one head.
"""

import numpy as np

from attention_core.analysis.low_rank.factors import perplexity


def spans(provenance: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return, for each of m mixtures, the indices of its first and last token, from shares ``provenance [m, n]``."""
    contains = provenance != 0
    last = contains.shape[-1] - 1 - contains[:, ::-1].argmax(-1)
    return tuple(zip(contains.argmax(-1).tolist(), last.tolist(), strict=True))


def effective_tokens(provenance: np.ndarray) -> np.ndarray:
    """Return each mixture's effective number of tokens, ``exp`` of the entropy of its shares, ``[m, n]`` to ``[m]``."""
    return perplexity(np.abs(provenance) / np.abs(provenance).sum(-1, keepdims=True))


def shared_mixture_pairs(provenance: np.ndarray) -> np.ndarray:
    """Return the pairs of tokens that occur together in a mixture, ``provenance [m, n]`` to ``bool [n, n]``."""
    contains = (provenance != 0).astype(np.float32)
    return contains.T @ contains > 0


def renormalise_started_mixtures(left: np.ndarray, provenance: np.ndarray) -> np.ndarray:
    """Normalise each query's weights over the mixtures that hold at least one token not after the query, ``[n, m]``.

    Args:
        left: each query's weights on the mixtures, ``[n, m]``.
        provenance: share of each token in each mixture, ``[m, n]``.
    """
    first = (provenance != 0).argmax(-1)
    kept_weights = np.where(first <= np.arange(len(left))[:, None], left, 0.0)
    total = kept_weights.sum(-1, keepdims=True)
    return kept_weights / np.where(total == 0, 1.0, total)


def fully_past_mixtures(provenance: np.ndarray) -> np.ndarray:
    """Return, per query, which mixtures hold no later token, ``bool [n, m]``: a causal mask on whole mixtures."""
    last = np.array(spans(provenance))[:, 1]
    return last <= np.arange(provenance.shape[1])[:, None]


def future_mass(matrix: np.ndarray) -> np.ndarray:
    """Return the share of each row's absolute mass on later tokens, ``[n]``; 0 for a zero row."""
    sizes = np.abs(matrix)
    total = sizes.sum(-1)
    return np.triu(sizes, 1).sum(-1) / np.where(total == 0, 1.0, total)


def closest_mixing(reference: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the matrix ``X @ right`` closest to a reference in the Frobenius norm, over all X, ``[n, n]``.

    No weights on these mixtures can be closer; the remaining error is due to the mixing alone.

    Args:
        reference: ``[n, n]``.
        right: the mixtures, ``[m, n]``; they may be linearly dependent.
    """
    _, sizes, rows = np.linalg.svd(right.astype(np.float64), full_matrices=False)
    rows = rows[sizes > sizes.max() * max(right.shape) * np.finfo(np.float32).eps]
    return (reference @ rows.T) @ rows
