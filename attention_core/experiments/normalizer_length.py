"""The normaliser Z, by which a row of softmax or squared ReLU is divided, at each number of tokens."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.experiments.lengths import measured_lengths
from attention_core.experiments.task import Load, group_by_head, load
from attention_core.inputs.source import Source
from attention_core.ops.softmax.blockwise import RowBlock, row_blocks

MAX_LOG_GROWTH = 700.0
"""Logarithm from which a growth factor is left out, because it might not fit into a float64."""


@dataclass(frozen=True, kw_only=True)
class NormalizerTask:
    """A task that measures Z, the sum of a row's weights before division, of softmax and squared ReLU at one length."""

    source: Source
    n: int
    longest: int
    causal: bool
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizerRow:
    """The Z of one head at one length, for softmax or squared ReLU.

    Attributes:
        normalizer: ``"softmax"`` or ``"relu2"``.
        log_z: mean over queries of ``log Z_i``, the logarithm of the geometric mean of Z. Queries with ``Z_i = 0`` are
            left out; None if all are.
        empty: share of queries with ``Z_i = 0``.
    """

    normalizer: str
    n: int
    head: int
    seed: int | None
    log_z: float | None
    empty: float


def tasks(source: Source, *, longest: int, causal: bool = False, seeds: int = 1) -> tuple[NormalizerTask, ...]:
    """Return one task per length and seed, short lengths first; arguments as in ``entropy_length.tasks``."""
    return tuple(
        NormalizerTask(source=seeded, n=n, longest=longest, causal=causal, seed=seed)
        for n in measured_lengths(longest)
        for seed, seeded in source.reseeded(seeds)
    )


def run(task: NormalizerTask, *, load: Load = load) -> tuple[NormalizerRow, ...]:
    """Measure Z of softmax and of squared ReLU at one length, per head."""
    qkv = task.source.at_length(task.n, task.longest, load)
    rows = []
    for head, (q, k) in enumerate(zip(qkv.q, qkv.k, strict=True)):
        for name in LOG_NORMALIZERS:
            log_z = log_normalizer(q, k, name, causal=task.causal)
            finite = log_z[log_z.isfinite()]
            rows.append(
                NormalizerRow(
                    normalizer=name,
                    n=qkv.m,
                    head=head,
                    seed=task.seed,
                    log_z=float(finite.mean()) if len(finite) else None,
                    empty=1 - len(finite) / qkv.n,
                )
            )
    return tuple(rows)


def growth(rows: Iterable[NormalizerRow], name: str) -> list[tuple[int, float]]:
    """Return pairs of n and a head's growth: its Z at n divided by its Z at its shortest length.

    ``name`` is ``"softmax"`` or ``"relu2"``.
    """
    result = []
    for head in group_by_head(row for row in rows if row.normalizer == name):
        logs = [(row.n, row.log_z) for row in head if row.log_z is not None]
        result += [(n, math.exp(z - logs[0][1])) for n, z in logs if z - logs[0][1] < MAX_LOG_GROWTH]
    return result


def log_normalizer(q: Tensor, k: Tensor, name: str, *, causal: bool) -> Tensor:
    """Compute ``log Z_i`` of each query, ``[n]`` float64; minus infinity if ``Z_i = 0``.

    With unmodified logits ``x_ij = q_i · k_j / √d`` (no maximum subtracted), ``Z_i`` is ``Σ_j exp(x_ij)`` for
    ``"softmax"`` and ``Σ_j relu(x_ij)²`` for ``"relu2"``. If all logits are zero, softmax's ``Z_i`` is the number of
    keys.

    Args:
        q: ``[n, d]``.
        k: ``[m, d]``; m is n if ``causal`` is set.
        name: one of ``LOG_NORMALIZERS``.
        causal: whether query i attends to keys 0..i only.
    """
    n, d = q.shape
    q = q * d**-0.5
    blocks = row_blocks(n, causal=causal, keys=len(k))
    return torch.cat([LOG_NORMALIZERS[name](q[r.start : r.stop] @ k[: r.key_count].mT, r) for r in blocks])


def _softmax(logits: Tensor, rows: RowBlock) -> Tensor:
    return rows.fill_future(logits, -torch.inf).double().logsumexp(-1)


def _relu2(logits: Tensor, rows: RowBlock) -> Tensor:
    return rows.fill_future(logits, 0.0).relu_().double().square().sum(-1).log()


LOG_NORMALIZERS: dict[str, Callable[[Tensor, RowBlock], Tensor]] = {"softmax": _softmax, "relu2": _relu2}
"""Functions that compute log Z of a block of rows, by name: ``(logits [size, keys], rows) -> log Z [size]``."""
