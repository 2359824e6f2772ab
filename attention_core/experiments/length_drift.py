"""How row sums and output norms of squared ReLU change with the sequence length, for several normalizers.

A normalizer is the rule for the number by which a row is divided.

Training compensates a constant factor, but a model cannot compensate a divisor that changes with n. So the meaningful
quantity is a row's sum, or an output's norm, divided by its value at the length of training.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch

from attention_core import registry
from attention_core.experiments.normalizer_length import NormalizerTask
from attention_core.experiments.normalizer_length import tasks as tasks
from attention_core.experiments.task import Load, group_by_head, load
from attention_core.ops.softmax.masked import key_counts, safe_divisor

NORMALIZERS = ("length", "squared", "fixed", "sum")
"""The divisors of ``relu2``, as values of its setting."""
SOFTMAX = "softmax"
"""The name of the softmax rows, for comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRow:
    """The measurements of one head with one normalizer at one length.

    Attributes:
        normalizer: one of ``NORMALIZERS``, or ``SOFTMAX``. ``"fixed"`` divides by 1, because any other constant is the
            same factor at every length.
        total: row sum ``Σ_j A_ij``, mean over queries.
        size: root mean square over queries of ``‖Σ_j A_ij v_j‖``.
    """

    normalizer: str
    n: int
    head: int
    seed: int | None
    total: float
    size: float


def run(task: NormalizerTask, *, load: Load = load) -> tuple[DriftRow, ...]:
    """Measure row sums and outputs with every normalizer and softmax at one length, per head."""
    qkv = task.source.at_length(task.n, task.longest, load)
    counts = key_counts(qkv.k, causal=task.causal)
    undivided = registry.get("relu2", normalizer="fixed", base_length=1)
    rows: list[DriftRow] = []
    for head, (q, k, v) in enumerate(zip(*qkv.tensors, strict=True)):
        # A column of ones is appended to the values, so that the last column of the output holds the sums of the
        # matrix's rows. The output without a divisor is computed once and then divided by each divisor.
        values = torch.cat([v, torch.ones_like(v[:, :1])], -1)
        sums, softmax = (
            attention.attend(q, k, values, causal=task.causal).double()
            for attention in (undivided, registry.get("softmax"))
        )
        total = safe_divisor(sums[:, -1:])
        divisors = {"length": counts, "squared": counts**2, "fixed": torch.ones_like(counts), "sum": total}
        outputs = {name: sums / divisors[name] for name in NORMALIZERS} | {SOFTMAX: softmax}
        rows += [
            DriftRow(
                normalizer=name,
                n=qkv.m,
                head=head,
                seed=task.seed,
                total=float(out[:, -1].mean()),
                size=float(out[:, :-1].square().sum(-1).mean().sqrt()),
            )
            for name, out in outputs.items()
        ]
    return tuple(rows)


def ratios(
    rows: Iterable[DriftRow], base: int, measure: Literal["total", "size"]
) -> dict[str, list[tuple[int, float]]]:
    """Return ``(n, measure / measure at length base)`` of every head, by normalizer.

    Heads with a measure of 0 at that length are left out.
    """
    result: dict[str, list[tuple[int, float]]] = {name: [] for name in (*NORMALIZERS, SOFTMAX)}
    rows = list(rows)
    for name, points in result.items():
        for head in group_by_head(row for row in rows if row.normalizer == name):
            by_length: dict[int, float] = {row.n: getattr(row, measure) for row in head}
            if (base_value := by_length.get(base, 0.0)) > 0:
                points += [(n, value / base_value) for n, value in by_length.items()]
    return result
