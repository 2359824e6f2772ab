"""What does Nyström attention gain from a better inverse? Its error after each iteration, beside the exact inverse."""

from dataclasses import dataclass

import numpy as np

from attention_core import registry
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.error import relative_error
from attention_core.variant import Attention


@dataclass(frozen=True, kw_only=True)
class InverseTask:
    """One variant on one head.

    Attributes:
        source: where the queries and keys come from.
        head: the head.
        word: Nyström attention with its settings, of which landmarks and method count.
    """

    source: Source
    head: int
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseRow:
    """One inverse of the middle factor.

    Attributes:
        iterations: how many made it; None for the exact inverse.
        error: the relative Frobenius error of the matrix against softmax.
        residual: the Frobenius norm of ``I - middle V`` over that of ``I``.
        largest: the largest magnitude in the inverse.
        negative: the share of negative mass.
    """

    iterations: int | None
    error: float
    residual: float
    largest: float
    negative: float


def tasks(source: Source, *, head: int, word: str) -> tuple[InverseTask, ...]:
    """The one task there is: all iterations together cost little more than the last."""
    return (InverseTask(source=source, head=head, word=word),)


def run(task: InverseTask, *, load: Load = load) -> tuple[InverseRow, ...]:
    """Measure every number of iterations the setting allows, and last the exact inverse."""
    qkv = load(task.source, None)
    attention = registry.from_word(task.word)
    q, k = qkv.q[task.head], qkv.k[task.head]
    exact = attention.reference(q, k).double()
    longest = next(s for s in attention.variant.params.settings() if s.name == "iterations")
    forms: list[tuple[int | None, Attention]] = [
        (i, attention.with_settings(inverse="iterative", iterations=i)) for i in range(1, int(longest.high or 1) + 1)
    ]
    rows = []
    for iterations, form in [*forms, (None, attention.with_settings(inverse="exact"))]:
        parts = form.anatomy(q, k, k)
        found = (parts["left"] @ (parts["inverse"] @ parts["right"])).double()
        rows.append(
            InverseRow(
                iterations=iterations,
                error=float(relative_error(found, exact)),
                residual=float(parts["residuals"][-1]),
                largest=float(parts["inverse"].abs().max()),
                negative=float(found.clamp(max=0).abs().sum() / found.abs().sum()),
            )
        )
    return tuple(rows)


def inverted(middle: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Which directions of a matrix a number of iterations has inverted.

    The iteration starts from a multiple of the transpose, so it never turns a singular vector: along the i-th, the
    product of matrix and inverse is a number of its own, from near 0 (not yet seen) to 1 (inverted).

    Args:
        middle: ``[m, m]``, not zero.
        iterations: how many rounds.

    Returns:
        The singular values, descending, and the share of each that is inverted, ``[m]`` each.
    """
    a = middle.astype(float)
    values = np.linalg.svd(a, compute_uv=False)
    share = values**2 / (np.abs(a).sum(-2).max() * np.abs(a).sum(-1).max())
    for _ in range(iterations):
        share = 0.25 * share * (13 - share * (15 - share * (7 - share)))
    return values, share
