"""What a matrix of one head, or a factor of it, comes to: sizes, ranks, products, angles; numpy in, numpy out."""

import numpy as np
import torch

from attention_core.metrics.error import relative_error


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """What two factors make together, ``[..., n, m]`` and ``[..., m, k]`` to ``[..., n, k]``."""
    made: np.ndarray = left @ right
    return made


def off(matrix: np.ndarray, reference: np.ndarray) -> float:
    """How far a matrix is from another in the Frobenius norm, as a share of the other's norm, both ``[n, n]``."""
    return float(relative_error(*(torch.from_numpy(x.astype(float)) for x in (matrix, reference))))


def uniform(allowed: np.ndarray) -> np.ndarray:
    """The matrix that looks at all allowed pairs of a row alike, ``bool [n, n]`` to ``float64 [n, n]``."""
    even: np.ndarray = allowed / allowed.sum(-1, keepdims=True)
    return even


def rank(matrix: np.ndarray) -> int:
    """How many rows of ``[m, n]`` are independent, singular values within rounding of zero left out."""
    return int(np.linalg.matrix_rank(matrix))


def kinds(matrix: np.ndarray) -> int:
    """How many different columns ``[m, n]`` has."""
    return int(np.unique(matrix, axis=1).shape[1])


def lengths(x: np.ndarray) -> np.ndarray:
    """The Euclidean length of each of some vectors or matrices, ``[n, ...]`` to ``float64 [n]``."""
    sizes: np.ndarray = np.linalg.norm(x.reshape(len(x), -1).astype(float), axis=1)
    return sizes


def cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The cosine between each of ``[n, d]`` and each of ``[m, d]``, ``[n, m]``; 0 beside a vector of zeros."""
    tiniest = np.finfo(np.float32).tiny
    one, other = (part / np.maximum(np.linalg.norm(part, axis=-1, keepdims=True), tiniest) for part in (x, y))
    angles: np.ndarray = one @ other.T
    return angles


def bearing(terms: np.ndarray) -> np.ndarray:
    """How many equal terms each sum amounts to, ``(Σ|t|)² / Σ t²``, the participation ratio, ``[n, m]`` to ``[n]``."""
    sizes = np.abs(terms)
    squares = np.maximum((sizes**2).sum(-1), np.finfo(np.float32).tiny)
    shared: np.ndarray = sizes.sum(-1) ** 2 / squares
    return shared


def passed(kept: np.ndarray) -> np.ndarray:
    """What is left after each token of what the first has written, from the shares each keeps, both ``[n, C]``."""
    left: np.ndarray = np.cumprod(np.concatenate([np.ones_like(kept[:1]), kept[1:]]), axis=0, dtype=float)
    return left


def half_lives(kept: np.ndarray) -> np.ndarray:
    """Tokens until half of what is held is left, ``[C]``, by the mean of the logarithms of shares kept, ``[n, C]``."""
    with np.errstate(divide="ignore"):
        lives: np.ndarray = np.log(0.5) / np.log(kept.astype(float)).mean(0)
    return np.abs(lives)


def perplexity(shares: np.ndarray) -> np.ndarray:
    """How many equal shares have the same entropy, ``exp H`` over the last axis, for shares that sum to one."""
    found: np.ndarray = np.exp(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(-1))
    return found
