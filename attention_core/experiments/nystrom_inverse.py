"""The error of Nyström attention after each iteration of its inverse, compared with the exact inverse."""

from dataclasses import dataclass

import numpy as np

from attention_core import registry
from attention_core.attention import Attention
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.approximation import relative_error


@dataclass(frozen=True, kw_only=True)
class InverseTask:
    """A task that measures one variant on one head.

    Attributes:
        word: Nyström attention with its settings; only landmarks and method are used.
    """

    source: Source
    head: int
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseRow:
    """The errors with one inverse of the middle factor.

    Attributes:
        iterations: number of iterations; None for the exact inverse.
        error: relative Frobenius error of the matrix against softmax.
        residual: Frobenius norm of ``I - M Z`` divided by the norm of ``I``, for the middle factor M and its inverse Z.
        largest: largest magnitude in the inverse.
        negative: sum of the magnitudes of the approximated matrix's negative weights, as a share of all magnitudes.
    """

    iterations: int | None
    error: float
    residual: float
    largest: float
    negative: float


def tasks(source: Source, *, head: int, word: str) -> tuple[InverseTask, ...]:
    """Return a single task, which measures all numbers of iterations."""
    return (InverseTask(source=source, head=head, word=word),)


def run(task: InverseTask, *, load: Load = load) -> tuple[InverseRow, ...]:
    """Measure every number of iterations that the setting allows, then the exact inverse."""
    qkv = load(task.source, None)
    attention = registry.from_word(task.word)
    q, k = qkv.q[task.head], qkv.k[task.head]
    exact = attention.reference(q, k).double()
    setting = next(s for s in attention.variant.params.settings() if s.name == "iterations")
    inverses: list[tuple[int | None, Attention]] = [
        (i, attention.with_settings(inverse="iterative", iterations=i)) for i in range(1, int(setting.high or 1) + 1)
    ]
    rows = []
    for iterations, variant in [*inverses, (None, attention.with_settings(inverse="exact"))]:
        parts = variant.anatomy(q, k, k)
        matrix = (parts["left"] @ (parts["inverse"] @ parts["right"])).double()
        rows.append(
            InverseRow(
                iterations=iterations,
                error=float(relative_error(matrix, exact)),
                residual=float(parts["residuals"][-1]),
                largest=float(parts["inverse"].abs().max()),
                negative=float(matrix.clamp(max=0).abs().sum() / matrix.abs().sum()),
            )
        )
    return tuple(rows)


def inverted_shares(middle: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute how far a number of iterations has inverted each singular direction of a matrix.

    The iteration starts from a multiple of the transpose, so it never rotates a singular vector. Along the i-th
    singular vector, the product of matrix and inverse is one number between 0 (not inverted yet) and 1 (inverted).

    Args:
        middle: ``[m, m]``, not zero.
        iterations: number of iterations.

    Returns:
        The singular values, descending, and the inverted share of each, ``[m]`` each.
    """
    a = middle.astype(float)
    values = np.linalg.svd(a, compute_uv=False)
    share = values**2 / (np.abs(a).sum(-2).max() * np.abs(a).sum(-1).max())
    for _ in range(iterations):
        share = 0.25 * share * (13 - share * (15 - share * (7 - share)))
    return values, share
