"""What follows from mixing tokens before anyone looks: how many each mixture blends, and what it tells of the future.

A provenance ``[m, n]`` says row by row how much of each token a mixture holds, a pooled key or a common query. All here
is numpy, for one head, and computed from such parts alone.
"""

import numpy as np

from attention_core.analysis.low_rank.factors import perplexity


def spans(provenance: np.ndarray) -> tuple[tuple[int, int], ...]:
    """The first and the last token that each mixture holds."""
    held = provenance != 0
    last = held.shape[-1] - 1 - held[:, ::-1].argmax(-1)
    return tuple(zip(held.argmax(-1).tolist(), last.tolist(), strict=True))


def blended(provenance: np.ndarray) -> np.ndarray:
    """How many equally weighted tokens each mixture amounts to, ``[m]``: e to the entropy of its absolute shares."""
    return perplexity(np.abs(provenance) / np.abs(provenance).sum(-1, keepdims=True))


def together(provenance: np.ndarray) -> np.ndarray:
    """The pairs of tokens that some mixture holds both of, ``bool [n, n]``."""
    held = (provenance != 0).astype(np.float32)
    return held.T @ held > 0


def begun(left: np.ndarray, provenance: np.ndarray) -> np.ndarray:
    """What queries make of the mixtures that hold a token they may see, all others hidden, ``[n, m]``.

    Args:
        left: each query's weights on the mixtures, ``[n, m]``.
        provenance: ``[m, n]``.
    """
    first = (provenance != 0).argmax(-1)
    seen = np.where(first <= np.arange(len(left))[:, None], left, 0.0)
    total = seen.sum(-1, keepdims=True)
    return seen / np.where(total == 0, 1.0, total)


def ended(provenance: np.ndarray) -> np.ndarray:
    """Which mixtures hold no token later than the query, ``bool [n, m]``: those left when whole ones are hidden."""
    last = np.array(spans(provenance))[:, 1]
    return last <= np.arange(provenance.shape[1])[:, None]


def ahead(matrix: np.ndarray) -> np.ndarray:
    """The share of each row's absolute mass that lies on later tokens, ``[n]``; 0 for a row of zeros."""
    sizes = np.abs(matrix)
    total = sizes.sum(-1)
    return np.triu(sizes, 1).sum(-1) / np.where(total == 0, 1.0, total)


def closest(reference: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The matrix closest to a reference, in Frobenius norm, of all products ``X @ right``, ``[n, n]``.

    No choice of weights on these mixtures can do better; what it still misses is the mixing itself.

    Args:
        reference: ``[n, n]``.
        right: the mixtures, ``[m, n]``; they may depend on each other.
    """
    _, sizes, rows = np.linalg.svd(right.astype(np.float64), full_matrices=False)
    rows = rows[sizes > sizes.max() * max(right.shape) * np.finfo(np.float32).eps]
    return (reference @ rows.T) @ rows
