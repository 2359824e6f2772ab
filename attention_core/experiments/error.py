"""What does the cheap version cost in fidelity? Each variant's error against its budget, and against length.

An error is taken against softmax on the same queries, keys and values, or against the variant's own ``reference`` where
its record has one. All measures grow with the error, from 0:

- ``matrix``: relative Frobenius norm of the difference of the matrices;
- ``mass``: mean over rows of the total variation, the share of mass on the wrong keys;
- ``kl``: mean over rows of ``KL(variant ‖ reference)`` in nats, of the rows' absolute values made to sum to one;
- ``missed``: mean over rows of the share of the reference's heaviest keys that are not among the variant's;
- ``output``: relative Frobenius norm of the difference of the outputs ``A v``;
- ``turn``: one minus the mean cosine between the rows of the outputs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_core import metrics, registry
from attention_core.algorithms.masked import causal_mask
from attention_core.experiments.task import Load, Row, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.metrics.floor import floor_beneath
from attention_core.metrics.passport import HEAVIEST
from attention_core.variant import Attention, Setting, Value

MEASURES = ("matrix", "mass", "kl", "missed", "output", "turn")
SEEDS = 5
"""Draws of a random variant: enough to see a spread, few enough to wait for."""
UNIFORM = "uniform"
"""What a row of uniform attention, the plain mean of the values, says for its variant."""
STOPS = 8
"""Values of a budget that is not a whole number."""


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
    return tuple(_with(attention, budget, value) for value in sorted({*ladder(budget, n), own}))


def ladder(budget: Setting, n: int) -> tuple[Value, ...]:
    """Values of a budget from its low bound to its high one: doublings up to n, even steps where it is a fraction."""
    low, high = float(budget.low or 0), float(budget.high or 0)
    if budget.kind == "float":
        return tuple(budget.check(low + (high - low) * i / (STOPS - 1)) for i in range(STOPS))
    top = max(min(high, n), low)
    stops = {top}
    while low < top:
        stops.add(low)
        low *= 2
    return tuple(budget.check(stop) for stop in sorted(stops))


def lengths_to(n: int, start: int = 8) -> tuple[int, ...]:
    """Doublings from ``start`` below n, then n."""
    stops = []
    while start < n:
        stops.append(start)
        start *= 2
    return (*stops, n)


def run(task: ErrorTask, *, load: Load = load) -> Sequence[Row]:
    """Measure: one row per head and seed.

    A row says which ``variant`` (or ``"uniform"``) with which ``setting`` at which ``value``, the ``reference`` it is
    held against (``"softmax"`` or the variant's key), ``head``, ``seed`` and ``n``, its ``multiply_adds`` for one head,
    the six ``MEASURES``, and where asked for the ``floor`` beneath ``matrix`` with its ``floor_kind``, the matrix's
    ``rank`` and its ``keys`` per row.

    Raises:
        LabError: if the source cannot be read at this length, or the variant cannot be causal and the task is.
    """
    attention, qkv = registry.from_word(task.word), load(task.source, task.tokens)
    budget, n, d = attention.variant.budget, qkv.n, qkv.q.shape[-1]
    own_reference = attention.variant.reference is not None
    candidates = [attention] if task.uniform else draws(attention)
    matrices = [None if task.uniform else _every_head(one, qkv, task.causal) for one in candidates]
    # The mean of the values adds up n of them in every column; a running one does no more.
    spent = n * d if task.uniform else attention.cost(n, d, causal=task.causal).multiply_adds
    found: list[Row] = []
    for head in range(qkv.heads) if task.head is None else (task.head,):
        q, k, v = qkv.q[head], qkv.k[head], qkv.v[head]
        reference = reference_of(attention, q, k, causal=task.causal)
        for one, every in zip(candidates, matrices, strict=True):
            if task.uniform:
                own = uniform(n, causal=task.causal)
            else:
                own = one.weights(q, k, causal=task.causal) if every is None else every[head]
            row: Row = {
                "variant": UNIFORM if task.uniform else attention.key,
                "setting": None if budget is None or task.uniform else budget.name,
                "value": None if budget is None or task.uniform else getattr(attention.params, budget.name),
                "word": UNIFORM if task.uniform else task.word,
                "reference": attention.key if own_reference else "softmax",
                "head": head,
                "seed": getattr(one.params, "seed", None) if attention.variant.random else None,
                "n": n,
                "causal": task.causal,
                "multiply_adds": spent,
                **errors(own, reference, v),
            }
            if task.floors and own.isfinite().all():
                floor = floor_beneath(own, reference)
                row |= {"floor": floor.error, "floor_kind": floor.kind, "rank": floor.rank, "keys": floor.keys}
            found.append(row)
    return found


def errors(own: Tensor, reference: Tensor, v: Tensor) -> dict[str, float]:
    """All measures of one matrix ``[n, n]`` beside its reference ``[n, n]``, with values ``[n, d_v]``."""
    out, exact = own.double() @ v.double(), reference.double() @ v.double()
    found = (
        metrics.relative_error(own, reference),
        metrics.wrong_mass(own, reference),
        metrics.kl_divergence(own, reference).mean(),
        1 - metrics.top_k_overlap(own, reference, HEAVIEST).mean(),
        metrics.relative_error(out, exact),
        1 - metrics.cosine(out, exact),
    )
    return {name: float(value) for name, value in zip(MEASURES, found, strict=True)}


def reference_of(attention: Attention, q: Tensor, k: Tensor, *, causal: bool) -> Tensor:
    """The matrix a variant's errors are taken against, ``[..., n, n]``: its own reference, or softmax."""
    if attention.variant.reference is not None:
        return attention.variant.reference(q, k, attention.params, causal=causal)
    return registry.get("softmax").weights(q, k, causal=causal)


def uniform(n: int, *, causal: bool) -> Tensor:
    """The matrix whose output is the plain mean of the values each query may see, float64 ``[n, n]``."""
    return metrics.distribution(causal_mask(n) if causal else torch.ones(n, n))


def draws(attention: Attention) -> list[Attention]:
    """A random variant under its own seed and the next ones; any other as it is."""
    seed = next((s for s in attention.variant.params.settings() if s.name == "seed"), None)
    if not attention.variant.random or seed is None:
        return [attention]
    low, high, own = int(seed.low or 0), int(seed.high or 0), getattr(attention.params, "seed")  # noqa: B009
    return [_with(attention, seed, low + (own - low + i) % (high - low + 1)) for i in range(SEEDS)]


def _with(attention: Attention, setting: Setting, value: Value) -> Attention:
    return Attention(attention.variant, replace(attention.params, **{setting.name: value}))


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
