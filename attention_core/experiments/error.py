"""What does the cheap version cost in fidelity? Each variant's error against its budget, and against length.

An error is taken against softmax on the same queries, keys and values, or against the variant's own ``reference`` where
its record has one.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from attention_core import metrics, registry
from attention_core.experiments.task import Load, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.metrics.floor import floor_beneath
from attention_core.metrics.passport import HEAVIEST
from attention_core.ops.softmax.masked import causal_mask
from attention_core.variant import Attention, Setting, Value

MEASURES = ("matrix", "mass", "kl", "missed", "output", "turn")
SEEDS = 5
"""Draws of a random variant: enough to see a spread, few enough to wait for."""
UNIFORM = "uniform"
"""What a row of uniform attention, the plain mean of the values, says for its variant."""
STOPS = 8
"""Values of a budget that is not a whole number."""
BAND = (0.25, 0.5, 0.75)
"""Quantiles over heads and seeds: the edges of the band, which holds the middle half, and the median."""


@dataclass(frozen=True, kw_only=True)
class ErrorTask:
    """One variant with its settings on one input, every head looked at and every seed.

    Attributes:
        source: the input.
        word: the variant and its settings, as ``Attention.word`` writes them.
        tokens: length of the input, None for its own.
        head: the head looked at, None for all of them.
        causal: whether the future is hidden.
        uniform: whether uniform attention stands in the variant's place, against the variant's reference.
        floors: whether the floor beneath the matrix error is found as well, which takes singular values.
    """

    source: Source
    word: str
    tokens: int | None = None
    head: int | None = None
    causal: bool = False
    uniform: bool = False
    floors: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """One variant, or uniform attention in its place, on one head under one seed; every measure grows from 0.

    Attributes:
        variant: its key, or ``"uniform"``.
        setting: its budget's name, None where it has none.
        value: its budget.
        word: the variant and its settings, or ``"uniform"``.
        reference: what it is held against, ``"softmax"`` or the key of the variant that brings its own.
        head: the head.
        seed: of a random variant.
        n: tokens.
        causal: whether the future is hidden.
        multiply_adds: for one head.
        matrix: relative Frobenius norm of the difference of the matrices.
        mass: mean over rows of the total variation, the share of mass on the wrong keys.
        kl: mean over rows of ``KL(variant ‖ reference)`` in nats, of absolute values made to sum to one.
        missed: mean over rows of the share of the reference's heaviest keys that are not among the variant's.
        output: relative Frobenius norm of the difference of the outputs ``A v``.
        turn: one minus the mean cosine between the rows of the outputs.
        floor: what ``matrix`` cannot go below, None where that was not asked for.
        floor_kind: what bounds it, as of ``metrics.floor.Floor``.
        rank: the matrix's rank, None where it is not dense.
        keys: its non-zeros per row, on average.
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
    floor: float | None
    floor_kind: Literal["rank", "keys", ""] | None
    rank: int | None
    keys: float | None


@dataclass(frozen=True, kw_only=True)
class ErrorPoint:
    """One variant with its settings at one length, its heads and seeds put together.

    Attributes:
        variant: as of ``ErrorRow``, and so are those up to ``multiply_adds``.
        low: the lower quartile over heads and seeds.
        middle: the median error.
        high: the upper quartile.
        floor: the median of the floors beneath the matrix error, None where they were not found.
        floor_kind: what bounds most of them.
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
    floor: float | None
    floor_kind: Literal["rank", "keys", ""]

    @property
    def budget(self) -> float:
        """The budget as a number of things: what is a share, of n; 0 where there is none."""
        if isinstance(self.value, float):
            return self.value * self.n
        return float(self.value) if isinstance(self.value, int) else 0.0


def tasks(
    source: Source, n: int, words: Sequence[str], *, head: int | None = None, causal: bool = False
) -> tuple[ErrorTask, ...]:
    """Error against budget: each variant over a ladder of its budget, or as it is where it has none.

    Variants that cannot be causal are left out where causal is asked. The zeros come first, then a few values of every
    variant, then those between.

    Args:
        source: the input.
        n: its tokens, where the ladders of whole numbers end.
        words: the variants with their settings.
        head: the head looked at, None for all of them.
        causal: whether the future is hidden.
    """
    shown = _able(words, causal)
    common = ErrorTask(source=source, word="softmax", head=head, causal=causal)
    steps = [
        (_urgency(i), replace(common, word=rung.word))
        for attention in shown
        for i, rung in enumerate(rungs(attention, n))
    ]
    return (*_zeros(shown, common), *(task for _, task in sorted(steps, key=lambda step: step[0])))


def length_tasks(
    source: Source, lengths: Iterable[int], words: Sequence[str], *, head: int | None = None, causal: bool = False
) -> tuple[ErrorTask, ...]:
    """Error against length, each variant with its settings as they are; the shortest come first.

    Args:
        source: the input.
        lengths: numbers of tokens, none beyond what the source can give.
        words: the variants with their settings.
        head: the head looked at, None for all of them.
        causal: whether the future is hidden.
    """
    shown = _able(words, causal)
    found: list[ErrorTask] = []
    for n in sorted(lengths):
        common = ErrorTask(source=source, word="softmax", tokens=n, head=head, causal=causal, floors=False)
        found += [*_zeros(shown, common), *(replace(common, word=attention.word) for attention in shown)]
    return tuple(found)


def rungs(attention: Attention, n: int) -> tuple[Attention, ...]:
    """The variant at every value of its budget's ladder, its own value among them; only itself where it has none."""
    budget = attention.variant.budget
    if budget is None:
        return (attention,)
    own = getattr(attention.params, budget.name)
    return tuple(attention.with_settings(**{budget.name: value}) for value in sorted({*ladder(budget, n), own}))


def ladder(budget: Setting, n: int) -> tuple[Value, ...]:
    """Values of a budget from its low bound to its high one: doublings up to n, even steps where it is a fraction."""
    low, high = float(budget.low or 0), float(budget.high or 0)
    if budget.kind == "float":
        return tuple(budget.check(low + (high - low) * i / (STOPS - 1)) for i in range(STOPS))
    stops = lengths_to(int(max(min(high, n), low)), max(int(low), 1))
    return stops if low > 0 else (0, *stops)  # nothing doubles to nothing


def lengths_to(n: int, start: int = 8) -> tuple[int, ...]:
    """Doublings from ``start`` below n, then n."""
    stops = []
    while start < n:
        stops.append(start)
        start *= 2
    return (*stops, n)


def run(task: ErrorTask, *, load: Load = load) -> tuple[ErrorRow, ...]:
    """Measure: one row per head and seed.

    Raises:
        LabError: if the source cannot be read at this length, or the variant cannot be causal and the task is.
    """
    attention, qkv = registry.from_word(task.word), load(task.source, task.tokens)
    budget, n, d = None if task.uniform else attention.variant.budget, qkv.n, qkv.q.shape[-1]
    candidates = [attention] if task.uniform else draws(attention)
    matrices = [None if task.uniform else _every_head(one, qkv, task.causal) for one in candidates]
    # The mean of the values adds up n of them in every column; a running one does no more. Heads that are computed
    # together share their cost evenly.
    whole = attention.cost(n, d, causal=task.causal, heads=qkv.heads).multiply_adds
    spent = n * d if task.uniform else whole // qkv.heads
    found = []
    for head in range(qkv.heads) if task.head is None else (task.head,):
        q, k, v = qkv.q[head], qkv.k[head], qkv.v[head]
        reference = attention.reference(q, k, causal=task.causal)
        for one, every in zip(candidates, matrices, strict=True):
            if task.uniform:
                own = uniform(n, causal=task.causal)
            else:
                own = one.weights(q, k, causal=task.causal) if every is None else every[head]
            floor = floor_beneath(own, reference) if task.floors and own.isfinite().all() else None
            row = ErrorRow(
                variant=UNIFORM if task.uniform else attention.key,
                setting=None if budget is None else budget.name,
                value=None if budget is None else getattr(attention.params, budget.name),
                word=UNIFORM if task.uniform else task.word,
                reference="softmax" if attention.variant.reference is None else attention.key,
                head=head,
                seed=getattr(one.params, "seed", None) if attention.random else None,
                n=n,
                causal=task.causal,
                multiply_adds=spent,
                **errors(own, reference, v, v if task.uniform else one.values(qkv.v)[head]),
                floor=None if floor is None else floor.error,
                floor_kind=None if floor is None else floor.kind,
                rank=None if floor is None else floor.rank,
                keys=None if floor is None else floor.keys,
            )
            found.append(row)
    return tuple(found)


def points(rows: Iterable[ErrorRow], measure: str) -> list[ErrorPoint]:
    """Put heads and seeds together, in the order in which the rows came.

    Args:
        rows: in any order.
        measure: one of ``MEASURES``.
    """
    groups: dict[tuple[str, str, int], list[ErrorRow]] = {}
    for row in rows:
        groups.setdefault((row.word, row.reference, row.n), []).append(row)
    return [_point(group, measure) for group in groups.values()]


def pareto_front(offers: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """The offers that no other beats in both respects, as places in ``offers``, cheapest first.

    An offer is beaten by one that costs no more and errs no more, and does better in at least one. Offers that are
    equal in both stand or fall together; one that is not finite is on no front.

    Args:
        offers: cost and error of each.
    """
    finite = [i for i, offer in enumerate(offers) if all(map(math.isfinite, offer))]
    front: list[int] = []
    for i in sorted(finite, key=offers.__getitem__):
        if not front or offers[i][1] < offers[front[-1]][1] or offers[i] == offers[front[-1]]:
            front.append(i)
    return tuple(front)


def best_within(
    offers: Sequence[ErrorPoint], most: float, prices: Mapping[str, float] | None = None
) -> ErrorPoint | None:
    """Return the point with the least error among those that cost no more; of equal ones the cheapest.

    Args:
        offers: the points.
        most: what a point may cost.
        prices: what each costs, by its word, points without one left out; multiply-adds where it is None.
    """
    price = {id(p): float(p.multiply_adds) if prices is None else prices.get(p.word, math.inf) for p in offers}
    able = [p for p in offers if price[id(p)] <= most and math.isfinite(p.middle)]
    return min(able, key=lambda p: (p.middle, price[id(p)]), default=None)


def errors(own: Tensor, reference: Tensor, v: Tensor, values: Tensor) -> dict[str, float]:
    """All measures of one matrix ``[n, n]`` beside its reference, with v and what it is of, ``[n, d_v]`` both."""
    out, exact = own.double() @ values.double(), reference.double() @ v.double()
    found = (
        metrics.relative_error(own, reference),
        metrics.wrong_mass(own, reference),
        metrics.kl_divergence(own, reference).mean(),
        1 - metrics.top_k_overlap(own, reference, HEAVIEST).mean(),
        metrics.relative_error(out, exact),
        1 - metrics.cosine(out, exact),
    )
    return {name: float(value) for name, value in zip(MEASURES, found, strict=True)}


def uniform(n: int, *, causal: bool) -> Tensor:
    """The matrix whose output is the plain mean of the values each query may see, float64 ``[n, n]``."""
    return metrics.distribution(causal_mask(n) if causal else torch.ones(n, n))


def draws(attention: Attention) -> list[Attention]:
    """A random variant under its own seed and the next ones; any other as it is."""
    seed = next((s for s in attention.variant.params.settings() if s.name == "seed"), None)
    if not attention.random or seed is None:
        return [attention]
    low, high, own = int(seed.low or 0), int(seed.high or 0), getattr(attention.params, "seed")  # noqa: B009
    return [attention.with_settings(seed=low + (own - low + i) % (high - low + 1)) for i in range(SEEDS)]


def _able(words: Iterable[str], causal: bool) -> list[Attention]:
    attentions = [registry.from_word(word) for word in words]
    return [a for a in attentions if not (causal and a.variant.causal_reason)]


def _zeros(shown: Iterable[Attention], common: ErrorTask) -> Iterator[ErrorTask]:
    yield replace(common, uniform=True, floors=False)
    for attention in shown:
        if attention.variant.reference is not None:
            yield replace(common, word=attention.word, uniform=True, floors=False)


def _urgency(i: int) -> int:
    """Every fourth value first, then the ones half-way, then the rest."""
    return 0 if i % 4 == 0 else 1 if i % 2 == 0 else 2


def _every_head(attention: Attention, qkv: QKV, causal: bool) -> Tensor | None:
    """All heads' matrices at once where the heads decide together; else they are made one by one, to save memory."""
    return attention.weights(qkv.q, qkv.k, causal=causal) if attention.variant.couples_heads else None


def _point(group: Sequence[ErrorRow], measure: str) -> ErrorPoint:
    first = group[0]
    low, middle, high = _of_sample([getattr(row, measure) for row in group])
    floors = [row.floor for row in group if row.floor is not None]
    kinds = [row.floor_kind for row in group if row.floor_kind is not None]
    same = ("variant", "word", "reference", "setting", "value", "n", "multiply_adds")
    return ErrorPoint(
        **{name: getattr(first, name) for name in same},
        low=low,
        middle=middle,
        high=high,
        floor=_of_sample(floors)[1] if len(floors) == len(group) else None,
        floor_kind=max(kinds, key=kinds.count, default=""),
    )


def _of_sample(values: Sequence[float]) -> tuple[float, float, float]:
    """The quantiles of ``BAND`` that are values of the sample: a mean with an infinite neighbour would be none.

    NaN where one is. As ``numpy.quantile`` by ``inverted_cdf``, in a quarter of a millisecond; a chart asks for
    dozens.
    """
    if any(map(math.isnan, values)):
        return math.nan, math.nan, math.nan
    ordered = sorted(values)
    low, middle, high = (ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in BAND)
    return low, middle, high
