"""The registry of transcriptions: each printed formula written in float64, independently of the library's algorithms.

A transcription quotes the formula that it transcribes. If ``causal``, only keys up to the query's position are visible:
sums over keys run over these keys, ``n_i`` is their number, and the entries of hidden keys are zero.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Matrix = Callable[[Tensor, Tensor, Any, bool], Tensor]
"""Type of ``(q, k, p, causal) -> [..., n, n]``, for queries and keys ``float64 [..., n, d]``."""


class Transcription(NamedTuple):
    """A formula and its matrix.

    Attributes:
        formula: the variant's ``formula`` when it was transcribed.
        matrix: the function that computes the matrix of the formula.
    """

    formula: str
    matrix: Matrix


TRANSCRIPTIONS: dict[str, Transcription] = {}
"""Transcriptions by the variant's key."""


def transcribes(key: str, formula: str) -> Callable[[Matrix], Matrix]:
    """Register a function as the transcription of a variant's formula."""

    def register(matrix: Matrix) -> Matrix:
        assert key not in TRANSCRIPTIONS, f"{key} is transcribed twice"
        TRANSCRIPTIONS[key] = Transcription(formula, matrix)
        return matrix

    return register


def positions(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of queries, ``[n, 1]``, and of keys, ``[1, n]``, counted from 1."""
    place = torch.arange(1, x.shape[-2] + 1)
    return place[:, None], place[None, :]


def visible_keys(x: Tensor, causal: bool) -> Tensor:
    """Return the keys that are visible to each query, ``bool [n, n]``."""
    i, j = positions(x)
    return (j <= i) if causal else (j == j).expand(x.shape[-2], -1)


def visible_count(x: Tensor, causal: bool) -> Tensor:
    """Return the number of keys that are visible to each query, ``float64 [n, 1]``."""
    return visible_keys(x, causal).sum(-1, keepdim=True).double()


def logits(q: Tensor, k: Tensor) -> Tensor:
    """Return ``q_i · k_j / √d``, ``[..., n, n]``."""
    return torch.einsum("...ic,...jc->...ij", q, k) / q.shape[-1] ** 0.5


def softmax(x: Tensor, seen: Tensor) -> Tensor:
    """Return ``e^x`` over its sum in each row, over the visible pairs; a row without visible pairs is zero."""
    largest = torch.where(seen, x, -torch.inf).amax(-1, keepdim=True)
    return divide_by_sum(torch.where(seen, torch.exp(torch.where(seen, x - largest, 0.0)), 0.0))


def divide_by_sum(x: Tensor) -> Tensor:
    """Return each row divided by its sum; a row whose sum is zero is zero."""
    total = x.sum(-1, keepdim=True)
    return torch.where(total == 0, 0.0, x / total)


def unit(x: Tensor) -> Tensor:
    """Return each vector divided by its length."""
    return x / x.square().sum(-1, keepdim=True).sqrt()
