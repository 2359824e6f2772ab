"""The error of approximating an attention matrix by m of its columns and rows, as in ``analysis.low_rank.cur``."""

from dataclasses import dataclass

from attention_core import metrics, registry
from attention_core.analysis.low_rank.cur import PICKS, Head, best_middle, landmark_count, nystrom_formula
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source

FORMULA, BEST, FLOOR, ATTENTION, UNIFORM = "formula", "best", "floor", "attention", "uniform"
"""Approximations: Nyström's formula, the best middle factor, the best matrix of rank m, Nyström attention as set,
uniform."""


@dataclass(frozen=True, kw_only=True)
class CurTask:
    """A task that approximates one head's softmax matrix from its columns and rows.

    Attributes:
        source: source of the queries and keys.
        head: the head.
        word: Nyström attention with its settings; its number of landmarks is the number of columns and rows.
        pick: how columns and rows are picked, one of ``PICKS``.
    """

    source: Source
    head: int
    word: str
    pick: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurRow:
    """The error of one approximation of a head's softmax matrix.

    Attributes:
        made: ``FORMULA``, ``BEST``, ``FLOOR``, ``ATTENTION`` or ``UNIFORM``.
        pick: one of ``PICKS``; None if no columns are picked.
        m: number of columns and rows, or of landmarks.
        error: the relative Frobenius error compared with the head's softmax matrix.
    """

    made: str
    pick: str | None = None
    m: int
    error: float


def tasks(source: Source, *, head: int, word: str, pick: str) -> tuple[CurTask, ...]:
    """Return a single task, because all values of m share the singular values of the whole matrix."""
    return (CurTask(source=source, head=head, word=word, pick=pick),)


def run(task: CurTask, *, load: Load = load) -> tuple[CurRow, ...]:
    """Measure the errors at each m of ``ladder``; at the variant's own number of landmarks, for all picks."""
    qkv, own = load(task.source, None), registry.from_word(task.word)
    of = Head.of(qkv, task.head)
    s, values = of.softmax, of.svd[1]
    uniform, rows = float(metrics.uniform_error(s)), list[CurRow]()
    for m in ladder(qkv.n, landmark_count(own)):
        attention = own.with_settings(landmarks=m)
        made = attention.weights(qkv.q[task.head], qkv.k[task.head])
        rows += [
            CurRow(made=FLOOR, m=m, error=float(values[m:].norm() / values.norm())),
            CurRow(made=ATTENTION, m=m, error=float(metrics.relative_error(made, s))),
            CurRow(made=UNIFORM, m=m, error=uniform),
        ]
        for pick in PICKS if m == min(landmark_count(own), qkv.n) else (task.pick,):
            where = of.picked(attention, pick)
            matrices = {FORMULA: nystrom_formula(s, *where)}
            if pick == task.pick:
                matrices[BEST] = best_middle(s, *where)
            rows += [
                CurRow(made=name, pick=pick, m=m, error=float(metrics.relative_error(matrix, s)))
                for name, matrix in matrices.items()
            ]
    return tuple(rows)


def ladder(n: int, own: int) -> tuple[int, ...]:
    """Return the values of m to measure, ascending: powers of two up to n / 2, and the variant's own number."""
    doubling = [2**i for i in range(n.bit_length()) if 2 ** (i + 1) <= n]
    return tuple(sorted({*doubling, min(own, n)}))
