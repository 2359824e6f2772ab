"""Attention weights and logits by distance |i − j|, with and without RoPE, and the upper bound for logits with RoPE.

RoPE rotates the p-th pair of channels of a query or key by ``position · θ_p``, with ``θ_p = base^(-2p/d)``. Read each
pair as a complex number, and let ``h_p`` be the query's pair times the conjugate of the key's, before the rotation. At
distance Δ, the dot product of query and key is ``Re Σ_p h_p exp(iΔθ_p)``.

Let ``S_m`` be the sum of ``exp(iΔθ_p)`` over the first m pairs, and ``h_{d/2} = 0``. Summation by parts gives the upper
bound ``max_p |h_{p+1} − h_p| · Σ_m |S_m|`` of the dot product. The mean ``|S_m|`` decays with Δ, but the dot product
itself need not.

Source: Su 2021, https://kexue.fm/archives/8265; Su et al. 2021, arXiv 2104.09864.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core import registry
from attention_core.experiments.task import Load, group_by_head, load
from attention_core.inputs.positions import (
    ALIBI,
    ALIBI_CHANNELS,
    BASE,
    Rope,
    adjacent_pairs,
    remove_alibi,
    rope_frequencies,
    rotary,
)
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.metrics.entropy import entropy

PLAIN, ROTATED, BIASED = "plain", "turned", "biased"
"""Queries and keys without RoPE, with RoPE, and with ALiBi in place of RoPE."""
DENSE_DISTANCES = 32
"""Largest distance up to which every distance is measured; beyond it, a few distances per doubling are enough."""


@dataclass(frozen=True, kw_only=True)
class DistanceTask:
    """A task that measures one source with and without RoPE."""

    source: Source
    n: int
    causal: bool
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceRow:
    """Measurements of one head in one form, at one distance; over all pairs if ``distance`` is None.

    Attributes:
        form: ``PLAIN``, ``ROTATED`` or ``BIASED``.
        distance: tokens between query and key. The fields ``weight``, ``logit``, ``size`` and ``bound`` are means over
            all allowed pairs at this distance.
        weight: softmax's attention weight.
        logit: ``q·k / √d``.
        size: absolute value of the logit.
        bound: upper bound of ``size`` with RoPE.
        entropy: softmax's entropy in nats, mean over queries; None unless ``distance`` is None.
    """

    form: str
    head: int
    seed: int | None
    distance: int | None = None
    weight: float | None = None
    logit: float | None = None
    size: float | None = None
    bound: float | None = None
    entropy: float | None = None


def tasks(source: Source, *, n: int, causal: bool = False, seeds: int = 1) -> tuple[DistanceTask, ...]:
    """Return one task per seed."""
    return tuple(DistanceTask(source=seeded, n=n, causal=causal, seed=seed) for seed, seeded in source.reseeded(seeds))


def run(task: DistanceTask, *, load: Load = load) -> tuple[DistanceRow, ...]:
    """Measure every form of one source per head: first over all pairs, then at each distance."""
    qkv, rows = task.source.at_length(task.n, task.n, load), []
    measured, by_form = distances(qkv.n), forms(qkv, task.source)
    for form, (queries, keys) in by_form.items():
        for head, (q, k) in enumerate(zip(queries, keys, strict=True)):
            row = partial(DistanceRow, form=form, head=head, seed=task.seed)
            weights = registry.get("softmax").weights(q, k, causal=task.causal)
            logits = q @ k.mT / q.shape[-1] ** 0.5
            rows.append(row(entropy=float(entropy(weights).mean())))
            plain = (by_form[PLAIN][0][head], by_form[PLAIN][1][head]) if form == ROTATED and PLAIN in by_form else None
            for distance in measured:
                mean_at = partial(_mean, distance=distance, causal=task.causal)
                bound = _bound(*plain, distance, rope_base(task.source), causal=task.causal) if plain else None
                rows.append(
                    row(
                        distance=distance,
                        weight=mean_at(weights),
                        logit=mean_at(logits),
                        size=mean_at(logits.abs()),
                        bound=bound,
                    )
                )
    return tuple(rows)


def forms(qkv: QKV, source: Source) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the queries and keys without RoPE and with it, by form, ``[H, n, d]`` float64 each.

    If the source already uses RoPE, the rotation is undone for the plain form. Otherwise, RoPE is applied for the
    rotated form. In both forms, the coordinates of a RoPE pair are adjacent. If the model rotates in an unknown
    way, only the rotated form is returned. A source with ALiBi also has the form ``BIASED``.
    """
    q, k = qkv.q.double(), qkv.k.double()
    biased = {BIASED: (q, k)} if source.positions == ALIBI else {}
    if biased:
        q, k = remove_alibi(q, k)
    rope = source.own_rope or Rope()
    if rope.base is None:
        return {ROTATED: (q, k)}
    if rope.halves:
        q, k = adjacent_pairs(q), adjacent_pairs(k)
    is_rotated = source.rope is not None
    other = (rotary(q, rope.base, inverse=is_rotated), rotary(k, rope.base, inverse=is_rotated))
    return ({PLAIN: other, ROTATED: (q, k)} if is_rotated else {PLAIN: (q, k), ROTATED: other}) | biased


def rotated_size(qkv: QKV, source: Source) -> int:
    """Return how many coordinates of a head RoPE rotates, or would rotate if it were used."""
    return qkv.q.shape[-1] - (ALIBI_CHANNELS if source.positions == ALIBI else 0)


def rope_base(source: Source) -> float:
    """Return the RoPE base, or the default base if the source has none or an unknown one."""
    rope = source.own_rope
    return BASE if rope is None or rope.base is None else rope.base


def distances(n: int) -> tuple[int, ...]:
    """Return the distances to measure, ascending, up to 3n/4, because few pairs are further apart."""
    last = 3 * n // 4
    result = [*range(min(DENSE_DISTANCES, last) + 1)]
    while result[-1] < last:
        result.append(min(result[-1] + max(result[-1] // 12, 1), last))
    return tuple(result)


def near_and_far(rows: Iterable[DistanceRow], form: str, name: str, n: int) -> list[tuple[float, float]]:
    """Return, per head, a measure at distance 1 and its mean over the measured distances beyond n / 2.

    Args:
        rows: rows of any heads and forms.
        form: one of the forms.
        name: name of the measure, a field of ``DistanceRow``.
        n: tokens.

    Returns:
        One pair of numbers per head; heads that lack one of the two numbers are left out.
    """
    result = []
    for head in group_by_head(row for row in rows if row.form == form and row.distance is not None):
        values: dict[int, float] = {row.distance: getattr(row, name) for row in head if row.distance is not None}
        far = [value for distance, value in values.items() if distance > n / 2 and distance > 1]
        if 1 in values and far and values[1] is not None:
            result.append((values[1], fmean(far)))
    return result


def partial_sums(distance: int, d: int, base: float = BASE) -> Tensor:
    """Return ``|S_1| … |S_{d/2}|`` (see ``rope_decay``) at a distance, ``[d // 2]`` float64."""
    angle = distance * rope_frequencies(d, base)
    return torch.polar(torch.ones_like(angle), angle).cumsum(0).abs()


def rope_decay(distances: Sequence[int], d: int, base: float = BASE) -> dict[str, list[float]]:
    """Compute the effect of RoPE alone at each distance, relative to its value at distance 0.

    Args:
        distances: numbers of tokens Δ between query and key.
        d: head size; a single coordinate is not rotated.
        base: RoPE's base, which sets how slowly the slowest pair rotates.

    Returns:
        ``sums``: the mean of ``|S_m|`` over all m, with ``S_m`` the sum of ``exp(iΔθ_p)`` over the first m pairs p.
            The upper bound of a logit is proportional to it.
        ``cosines``: the mean of ``cos(Δθ_p)`` over all pairs p. A key that equals its query has this logit, if all
            pairs have the same norm.
    """
    if d < 2:
        return {"sums": [1.0] * len(distances), "cosines": [1.0] * len(distances)}
    first = float(partial_sums(0, d, base).mean())
    return {
        "sums": [float(partial_sums(distance, d, base).mean()) / first for distance in distances],
        "cosines": [float((distance * rope_frequencies(d, base)).cos().mean()) for distance in distances],
    }


def _bound(q: Tensor, k: Tensor, distance: int, base: float, *, causal: bool) -> float:
    """Return an upper bound of ``|q·k| / √d`` after rotation, averaged over the pairs at this distance.

    ``q`` and ``k`` are not rotated yet, ``[n, d]``.
    """
    d, pairs = q.shape[-1], q.shape[-1] // 2
    total_sums, means = float(partial_sums(distance, d, base).sum()), []
    left, right = (torch.view_as_complex(x[:, : 2 * pairs].unflatten(-1, (pairs, 2)).contiguous()) for x in (q, k))
    for i, j in _pairs_at(len(q), distance, causal=causal):
        products = torch.view_as_real(left[i] * right[j].conj())
        # The bound defines the product after the last pair, h_{d/2}, as zero. A second zero is appended, because
        # ``diff`` needs two entries even if a head of size one has no pairs. It never changes the maximum.
        differences = F.pad(products, (0, 0, 0, 2)).diff(dim=-2).norm(dim=-1).amax(-1)
        # If d is odd, the last coordinate belongs to no pair and is not rotated, so the size of its product is added.
        unpaired = (q[i] * k[j])[:, 2 * pairs :].abs().sum(-1)
        means.append(float((differences * total_sums + unpaired).mean()))
    return sum(means) / len(means) / d**0.5


def _pairs_at(n: int, distance: int, *, causal: bool) -> Iterator[tuple[slice, slice]]:
    """Yield slices of queries and keys at this distance: first earlier keys and then, unless causal, later keys."""
    near, far = slice(0, n - distance), slice(distance, n)
    yield far, near
    if distance and not causal:
        yield near, far


def _mean(matrix: Tensor, distance: int, *, causal: bool) -> float:
    below = matrix.diagonal(-distance).mean()
    return float(below if causal else (below + matrix.diagonal(distance).mean()) / 2)


def equal_weight(i: int, n: int, *, causal: bool) -> float:
    """Return the mean weight at distance ``i`` among ``n`` tokens if each query gives equal weights to its keys."""
    return sum(1 / keys for keys in range(i + 1, n + 1)) / (n - i) if causal else 1 / n
