"""Numpy functions for one head: errors and ranks of matrices, lengths and cosines of vectors, numbers of terms."""

import numpy as np
import torch

from attention_core.metrics.approximation import relative_error


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the product of two factors, ``[..., n, m]`` and ``[..., m, k]`` to ``[..., n, k]``."""
    return left @ right


def relative_error_of(matrix: np.ndarray, reference: np.ndarray) -> float:
    """Compute the relative error of a matrix in the Frobenius norm, both ``[n, n]``."""
    return float(relative_error(*(torch.from_numpy(x.astype(float)) for x in (matrix, reference))))


def uniform_weights(allowed: np.ndarray) -> np.ndarray:
    """Return the matrix with equal weights on all allowed pairs of a row, ``bool [n, n]`` to ``float64 [n, n]``."""
    return allowed / allowed.sum(-1, keepdims=True)


def rank(matrix: np.ndarray) -> int:
    """Return the numerical rank of ``[m, n]``, ignoring singular values that may be rounding errors."""
    return int(np.linalg.matrix_rank(matrix))


def lengths(x: np.ndarray) -> np.ndarray:
    """Compute the Euclidean length of each vector or matrix, ``[n, ...]`` to ``float64 [n]``."""
    return np.linalg.norm(x.reshape(len(x), -1).astype(float), axis=1)


def cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the cosines between the rows of ``[n, d]`` and of ``[m, d]``, ``[n, m]``; 0 for a zero row."""
    min_norm = np.finfo(np.float32).tiny
    left, right = (part / np.maximum(np.linalg.norm(part, axis=-1, keepdims=True), min_norm) for part in (x, y))
    return left @ right.T


def participation_ratio(terms: np.ndarray) -> np.ndarray:
    """Compute the participation ratio ``(Σ|t|)² / Σ t²``, the effective number of terms, ``[n, m]`` to ``[n]``."""
    sizes = np.abs(terms)
    squares = np.maximum((sizes**2).sum(-1), np.finfo(np.float32).tiny)
    return sizes.sum(-1) ** 2 / squares


def perplexity(shares: np.ndarray) -> np.ndarray:
    """Compute the perplexity ``exp H`` over the last axis, for shares that sum to one.

    It is the number of equal shares that have the same entropy ``H``.
    """
    return np.exp(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(-1))
