"""The approximation error of each variant at several values of its budget, or at several lengths.

A budget is the setting that trades cost for accuracy. The reference is softmax on the same queries, keys and values,
or ``Variant.reference`` if the variant defines it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from attention_core import metrics, registry
from attention_core.attention import Attention
from attention_core.experiments.task import Load, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.metrics.floor import error_floor
from attention_core.metrics.passport import TOP_KEYS
from attention_core.ops.softmax.masked import causal_mask
from attention_core.variant import Setting, Value

MEASURES = ("matrix", "mass", "kl", "missed", "output", "turn")
SEEDS = 5
"""Seeds per random variant: enough to see a spread, few enough for a short wait."""
UNIFORM = "uniform"
"""Value of ``variant`` in the rows of uniform attention, the plain mean of the values."""
BUDGET_STEPS = 8
"""Number of measured values of a fractional budget."""
QUARTILES = (0.25, 0.5, 0.75)
"""The lower quartile, the median and the upper quartile, which summarize heads and seeds."""


@dataclass(frozen=True, kw_only=True)
class ErrorTask:
    """A task that measures one variant with its settings on one input, with every chosen head and every seed.

    Attributes:
        tokens: length of the input; None for its own length.
        is_uniform: whether uniform attention, not the variant, is compared with the variant's reference.
        with_floors: whether to compute the lower bound of the matrix error too, which needs singular values.
    """

    source: Source
    word: str
    tokens: int | None = None
    head: int | None = None
    causal: bool = False
    is_uniform: bool = False
    with_floors: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """The errors of one variant, or of uniform attention, on one head with one seed; every measure is 0 at best.

    Attributes:
        variant: the variant's key, or ``"uniform"``.
        setting: name of the setting that is the variant's budget; None without a budget.
        value: value of this setting.
        word: the variant and its settings, or ``"uniform"``.
        reference: ``"softmax"``, or the variant's key if it has a reference of its own.
        seed: seed of a random variant.
        multiply_adds: multiply-adds for one head.
        matrix: relative Frobenius norm of the difference of the matrices.
        mass: total variation, the share of mass on the wrong keys, mean over rows.
        kl: ``KL(variant ‖ reference)`` in nats of the absolute values, normalized to sum to one, mean over rows.
        missed: share of the reference's heaviest keys that are not among the variant's, mean over rows.
        output: relative Frobenius norm of the difference of the outputs ``A v``.
        turn: the change of direction: one minus the mean cosine between the rows of the outputs.
        size: Frobenius norm of the output, divided by that of the reference's output.
        negative_mass: share of the absolute mass that is on negative entries.
        floor: lower bound of ``matrix``; None if it was not computed.
        floor_kind: the property that gives this lower bound, as in ``metrics.floor.Floor``.
        rank: the matrix's rank; None if the matrix is not dense.
        keys: mean number of non-zeros per row of the matrix.
    """

    variant: str
    setting: str | None
    value: Value | None
    word: str
    reference: str
    head: int
    seed: int | None
    n: int
    causal: bool
    multiply_adds: int
    matrix: float
    mass: float
    kl: float
    missed: float
    output: float
    turn: float
    size: float
    negative_mass: float
    floor: float | None
    floor_kind: Literal["rank", "keys", ""] | None
    rank: int | None
    keys: float | None


@dataclass(frozen=True, kw_only=True)
class ErrorPoint:
    """The error of one variant with its settings at one length, summarized over heads and seeds.

    The attributes from ``variant`` to ``multiply_adds`` are as in ``ErrorRow``.

    Attributes:
        low: lower quartile of the error over heads and seeds.
        middle: median of the error.
        high: upper quartile of the error.
        mass: median of the share of mass on the wrong keys.
        negative_mass: median of the shares of mass on negative entries.
        floor: median of the lower bounds of the matrix error; None if they were not computed.
        floor_kind: the property that most often gives the lower bound.
    """

    variant: str
    word: str
    reference: str
    setting: str | None
    value: Value | None
    n: int
    multiply_adds: int
    low: float
    middle: float
    high: float
    mass: float
    negative_mass: float
    floor: float | None
    floor_kind: Literal["rank", "keys", ""]

    @property
    def budget(self) -> float:
        """The budget as a count: a fraction is multiplied by n; 0 if there is no budget."""
        if isinstance(self.value, float):
            return self.value * self.n
        return float(self.value) if isinstance(self.value, int) else 0.0


def tasks(
    source: Source, n: int, words: Sequence[str], *, head: int | None = None, causal: bool = False
) -> tuple[ErrorTask, ...]:
    """Return tasks for error against budget: each variant at increasing budgets, or once if it has no budget.

    Variants that cannot be causal are left out if ``causal`` is set. Uniform attention comes first, then every
    fourth budget of each variant, then the budgets in between.

    Args:
        source: the input.
        n: number of tokens of the input, which is also the largest value of integer budgets.
        words: the variants with their settings.
        head: index of the only head to measure; None for all heads.
        causal: whether a causal mask is used.
    """
    attentions = _supported(words, causal)
    common = ErrorTask(source=source, word="softmax", head=head, causal=causal)
    ranked = [
        (refinement_level(i), replace(common, word=variant.word))
        for attention in attentions
        for i, variant in enumerate(budget_variants(attention, n))
    ]
    return (*_uniform_tasks(attentions, common), *(task for _, task in sorted(ranked, key=lambda pair: pair[0])))


def length_tasks(
    source: Source, lengths: Iterable[int], words: Sequence[str], *, head: int | None = None, causal: bool = False
) -> tuple[ErrorTask, ...]:
    """Return tasks for error against length, each variant with its given settings; the shortest lengths come first.

    Args:
        source: the input.
        lengths: numbers of tokens, at most what the source can provide.
        words: the variants with their settings.
        head: index of the only head to measure; None for all heads.
        causal: whether a causal mask is used.
    """
    attentions = _supported(words, causal)
    result: list[ErrorTask] = []
    for n in sorted(lengths):
        common = ErrorTask(source=source, word="softmax", tokens=n, head=head, causal=causal, with_floors=False)
        result += [*_uniform_tasks(attentions, common), *(replace(common, word=each.word) for each in attentions)]
    return tuple(result)


def budget_variants(attention: Attention, n: int) -> tuple[Attention, ...]:
    """Return the variant at every value of ``budget_values`` and at its own budget; unchanged without a budget."""
    budget = attention.variant.budget
    if budget is None:
        return (attention,)
    own = getattr(attention.params, budget.name)
    return tuple(attention.with_settings(**{budget.name: value}) for value in sorted({*budget_values(budget, n), own}))


def budget_values(budget: Setting, n: int) -> tuple[Value, ...]:
    """Return values of a budget between its bounds: doublings up to n, or equal steps for a fraction."""
    low, high = float(budget.low or 0), float(budget.high or 0)
    if budget.kind == "float":
        return tuple(budget.check(low + (high - low) * i / (BUDGET_STEPS - 1)) for i in range(BUDGET_STEPS))
    values = doubling_lengths(int(max(min(high, n), low)), max(int(low), 1))
    return values if low > 0 else (0, *values)  # doubling cannot start at 0


def doubling_lengths(n: int, start: int = 8) -> tuple[int, ...]:
    """Return doublings from ``start`` below n, followed by n."""
    lengths = []
    while start < n:
        lengths.append(start)
        start *= 2
    return (*lengths, n)


def run(task: ErrorTask, *, load: Load = load) -> tuple[ErrorRow, ...]:
    """Measure the errors and return one row per head and seed."""
    attention, qkv = registry.from_word(task.word), load(task.source, task.tokens)
    qkv.check_head(task.head)
    budget, n, d = None if task.is_uniform else attention.variant.budget, qkv.m, qkv.q.shape[-1]
    candidates = [attention] if task.is_uniform else seed_variants(attention)
    matrices = [None if task.is_uniform else _coupled_matrices(draw, qkv, task.causal) for draw in candidates]
    # Uniform attention (the mean of the values, or a causal running mean) adds n values in each of d columns. A
    # variant's cost is counted for all heads together, so each head gets an equal share.
    variant_cost = attention.cost(qkv.n, d, causal=task.causal, heads=qkv.heads, keys=n).multiply_adds
    multiply_adds = n * d if task.is_uniform else variant_cost // qkv.heads
    rows = []
    for head in range(qkv.heads) if task.head is None else (task.head,):
        q, k, v = qkv.q[head], qkv.k[head], qkv.v[head]
        reference = attention.reference(q, k, causal=task.causal)
        for draw, coupled in zip(candidates, matrices, strict=True):
            if task.is_uniform:
                weights = uniform_weights(qkv.n, causal=task.causal, keys=n)
            else:
                weights = draw.weights(q, k, causal=task.causal) if coupled is None else coupled[head]
            floor = error_floor(weights, reference) if task.with_floors and weights.isfinite().all() else None
            row = ErrorRow(
                variant=UNIFORM if task.is_uniform else attention.key,
                setting=None if budget is None else budget.name,
                value=None if budget is None else getattr(attention.params, budget.name),
                word=UNIFORM if task.is_uniform else task.word,
                reference="softmax" if attention.variant.reference is None else attention.key,
                head=head,
                seed=getattr(draw.params, "seed", None) if attention.random else None,
                n=n,
                causal=task.causal,
                multiply_adds=multiply_adds,
                **errors(weights, reference, v, v if task.is_uniform else draw.values(qkv.v)[head]),
                floor=None if floor is None else floor.error,
                floor_kind=None if floor is None else floor.kind,
                rank=None if floor is None else floor.rank,
                keys=None if floor is None else floor.keys,
            )
            rows.append(row)
    return tuple(rows)


def points(rows: Iterable[ErrorRow], measure: str) -> list[ErrorPoint]:
    """Summarize rows over heads and seeds, in the order of the rows.

    Args:
        rows: in any order.
        measure: one of ``MEASURES``.
    """
    groups: dict[tuple[str, str, int], list[ErrorRow]] = {}
    for row in rows:
        groups.setdefault((row.word, row.reference, row.n), []).append(row)
    return [_summarize(group, measure) for group in groups.values()]


def pareto_front(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """Return the indices of the points that no other point dominates, cheapest first.

    A point is dominated by a point that has no higher cost and no higher error, one of them lower.
    If one of several equal points is on the front, all are. Points that are not finite are never on the front.

    Args:
        points: pairs of cost and error.
    """
    finite = [i for i, point in enumerate(points) if all(map(math.isfinite, point))]
    front: list[int] = []
    for i in sorted(finite, key=points.__getitem__):
        if not front or points[i][1] < points[front[-1]][1] or points[i] == points[front[-1]]:
            front.append(i)
    return tuple(front)


def best_within_cost(
    points: Sequence[ErrorPoint], max_cost: float, costs: Mapping[str, float] | None = None
) -> ErrorPoint | None:
    """Return the point with the smallest error within a cost limit; of several such points, the cheapest.

    Args:
        points: the points.
        max_cost: the largest cost allowed.
        costs: cost of each point by ``point.word``; points without a cost are left out. None to use multiply-adds.
    """
    cost_of = {id(p): float(p.multiply_adds) if costs is None else costs.get(p.word, math.inf) for p in points}
    affordable = [p for p in points if cost_of[id(p)] <= max_cost and math.isfinite(p.middle)]
    return min(affordable, key=lambda p: (p.middle, cost_of[id(p)]), default=None)


def errors(weights: Tensor, reference: Tensor, v: Tensor, values: Tensor) -> dict[str, float]:
    """Compare a matrix and its output with those of a reference.

    Args:
        weights: ``[n, n]``.
        reference: the reference's matrix, ``[n, n]``.
        v: the values that the reference averages, ``[n, d_v]``.
        values: the values that the matrix averages, ``[n, d_v]``.

    Returns:
        All ``MEASURES``, ``size`` and ``negative_mass``, as attributes of ``ErrorRow``.
    """
    output, reference_output = weights.double() @ values.double(), reference.double() @ v.double()
    measured = (
        metrics.relative_error(weights, reference),
        metrics.wrong_mass(weights, reference),
        metrics.kl_divergence(weights, reference).mean(),
        1 - metrics.top_k_overlap(weights, reference, TOP_KEYS).mean(),
        metrics.relative_error(output, reference_output),
        1 - metrics.cosine(output, reference_output),
        output.norm() / reference_output.norm(),
        metrics.negative_mass(weights),
    )
    return {name: float(value) for name, value in zip((*MEASURES, "size", "negative_mass"), measured, strict=True)}


def uniform_weights(n: int, *, causal: bool, keys: int | None = None) -> Tensor:
    """Return the matrix whose output is the plain mean of the values of the allowed keys, float64 ``[n, n]``.

    Args:
        n: number of queries.
        causal: whether row i is uniform over keys 0..i only.
        keys: number of keys; n for None.
    """
    return metrics.distribution(causal_mask(n) if causal else torch.ones(n, keys or n))


def seed_variants(attention: Attention) -> list[Attention]:
    """Return the variant with several seeds, starting from its own, if it is random; otherwise only the variant."""
    seed = next((setting for setting in attention.variant.params.settings() if setting.name == "seed"), None)
    if not attention.random or seed is None:
        return [attention]
    low, high, first = int(seed.low or 0), int(seed.high or 0), getattr(attention.params, "seed")  # noqa: B009
    return [attention.with_settings(seed=low + (first - low + i) % (high - low + 1)) for i in range(SEEDS)]


def _supported(words: Iterable[str], causal: bool) -> list[Attention]:
    attentions = [registry.from_word(word) for word in words]
    return [a for a in attentions if not (causal and a.variant.causal_reason)]


def _uniform_tasks(attentions: Iterable[Attention], common: ErrorTask) -> Iterator[ErrorTask]:
    yield replace(common, is_uniform=True, with_floors=False)
    for attention in attentions:
        if attention.variant.reference is not None:
            yield replace(common, word=attention.word, is_uniform=True, with_floors=False)


def refinement_level(i: int) -> int:
    """Return the round, 0 to 2, in which budget i is measured: every fourth i, then every second, then the rest."""
    return 0 if i % 4 == 0 else 1 if i % 2 == 0 else 2


def _coupled_matrices(attention: Attention, qkv: QKV, causal: bool) -> Tensor | None:
    """Return all heads' matrices, ``[H, n, n]``, if the variant couples its heads, and otherwise None.

    If the result is None, the caller computes one head at a time, which takes less memory.
    """
    return attention.weights(qkv.q, qkv.k, causal=causal) if attention.variant.couples_heads else None


def _summarize(group: Sequence[ErrorRow], measure: str) -> ErrorPoint:
    first = group[0]
    low, middle, high = _quantiles([getattr(row, measure) for row in group])
    floors = [row.floor for row in group if row.floor is not None]
    kinds = [row.floor_kind for row in group if row.floor_kind is not None]
    shared = ("variant", "word", "reference", "setting", "value", "n", "multiply_adds")
    return ErrorPoint(
        **{name: getattr(first, name) for name in shared},
        low=low,
        middle=middle,
        high=high,
        mass=_median(group, "mass"),
        negative_mass=_median(group, "negative_mass"),
        floor=_quantiles(floors)[1] if len(floors) == len(group) else None,
        floor_kind=max(kinds, key=kinds.count, default=""),
    )


def _median(group: Sequence[ErrorRow], name: str) -> float:
    return _quantiles([getattr(row, name) for row in group])[1]


def _quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the ``QUARTILES`` of the values, each of which is one of the values.

    Interpolation between a finite and an infinite value would give infinity. All three are NaN if a value is NaN.
    The result equals ``numpy.quantile`` with ``inverted_cdf``, which is slower; a chart needs dozens of calls.
    """
    if any(map(math.isnan, values)):
        return math.nan, math.nan, math.nan
    ordered = sorted(values)
    low, middle, high = (ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in QUARTILES)
    return low, middle, high
