"""Trained at one length, used at another: how squared ReLU's rows and outputs drift with n under each normaliser.

A factor that never changes is learned away; what a model cannot know is how the divisor moves when n does. So what is
worth comparing is a row's total, or an output's size, over its own at the length trained at.
"""

from dataclasses import dataclass

import torch

from attention_core import registry
from attention_core.experiments.normalizer_length import NormalizerTask, tasks
from attention_core.experiments.task import Load, load
from attention_core.ops.softmax.masked import keys_seen, nonzero

__all__ = ["NORMALIZERS", "SOFTMAX", "run", "tasks"]

NORMALIZERS = ("length", "squared", "fixed", "sum")
"""The divisors of ``relu2``, by the words of its setting."""
SOFTMAX = "softmax"
"""What stands beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRow:
    """One head under one normaliser at one length.

    Attributes:
        normalizer: one of ``NORMALIZERS``, or ``SOFTMAX``; ``"fixed"`` divides by 1, as any other constant is the same
            factor at every length.
        n: tokens.
        head: the head.
        seed: of a synthetic source.
        total: mean over queries of ``Σ_j A_ij``.
        size: root mean square over queries of ``‖Σ_j A_ij v_j‖``.
    """

    normalizer: str
    n: int
    head: int
    seed: int | None
    total: float
    size: float


def run(task: NormalizerTask, *, load: Load = load) -> tuple[DriftRow, ...]:
    """Measure rows and outputs under every normaliser, and softmax, at one length, head by head.

    Raises:
        LabError: if the source cannot be read at this length.
    """
    qkv = task.source.at_length(task.n, task.longest, load)
    seen = keys_seen(qkv.q, causal=task.causal)
    plain = registry.get("relu2", normalizer="fixed", base_length=1)
    rows: list[DriftRow] = []
    for head, (q, k, v) in enumerate(zip(*qkv.tensors, strict=True)):
        # With a column of ones beside the values one pass gives outputs and totals, and all divisors share it.
        values = torch.cat([v, torch.ones_like(v[:, :1])], -1)
        squares, full = (
            attention.attend(q, k, values, causal=task.causal).double()
            for attention in (plain, registry.get("softmax"))
        )
        total = squares[:, -1:]
        divisors = {"length": seen, "squared": seen.square(), "fixed": torch.ones_like(seen), "sum": nonzero(total)}
        found = {name: squares / divisors[name] for name in NORMALIZERS} | {SOFTMAX: full}
        rows += [
            DriftRow(
                normalizer=name,
                n=qkv.n,
                head=head,
                seed=task.seed,
                total=float(out[:, -1].mean()),
                size=float(out[:, :-1].square().sum(-1).mean().sqrt()),
            )
            for name, out in found.items()
        ]
    return tuple(rows)
