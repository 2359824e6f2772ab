"""How close do some columns and rows of a matrix come to it, the more there are? See ``analysis.low_rank.cur``."""

from dataclasses import dataclass

from attention_core import metrics, registry
from attention_core.analysis.low_rank.cur import PICKS, Head, best_middle, landmark_count, nystrom_formula
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source

FORMULA, BEST, FLOOR, ATTENTION, UNIFORM = "formula", "best", "floor", "attention", "uniform"
"""What is made: Nyström's formula, the best middle, the best matrix of rank m, Nyström attention as it is set, uniform
attention."""


@dataclass(frozen=True, kw_only=True)
class CurTask:
    """One head's softmax from columns and rows.

    Attributes:
        source: where the queries and keys come from.
        head: the head.
        word: Nyström attention with its settings; it has as many landmarks as columns and rows are chosen.
        pick: one of ``PICKS``.
    """

    source: Source
    head: int
    word: str
    pick: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurRow:
    """One matrix in the place of a head's softmax.

    Attributes:
        made: ``FORMULA``, ``BEST``, ``FLOOR``, ``ATTENTION`` or ``UNIFORM``.
        pick: one of ``PICKS``, None where nothing is picked.
        m: columns and rows, or landmarks.
        error: the relative Frobenius error beside the head's softmax.
    """

    made: str
    pick: str | None = None
    m: int
    error: float


def tasks(source: Source, *, head: int, word: str, pick: str) -> tuple[CurTask, ...]:
    """The one task there is: all numbers of columns share the singular values of the whole."""
    return (CurTask(source=source, head=head, word=word, pick=pick),)


def run(task: CurTask, *, load: Load = load) -> tuple[CurRow, ...]:
    """Measure every number m of columns and rows of ``ladder``; at the landmarks' own the other picks as well."""
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
    """Numbers of columns and rows to measure, ascending: doubling up to n / 2, and the one that is looked at."""
    doubling = [2**i for i in range(n.bit_length()) if 2 ** (i + 1) <= n]
    return tuple(sorted({*doubling, min(own, n)}))
