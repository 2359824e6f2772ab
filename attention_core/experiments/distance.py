"""Does RoPE make attention fade with distance? Weights and logits over |i − j| with and without it, and its bound.

RoPE turns pair i of a query and of a key by ``position · θ_i`` with ``θ_i = base^(-2i/d)``, so that their product is
``Re Σ_i h_i e^{iΔθ_i}`` at distance Δ, where ``h_i`` is the pair's product before, as complex numbers. Summed by parts,
with ``S_j = Σ_{i<j} e^{iΔθ_i}`` and ``h_{d/2} = 0``, it is at most ``max_i |h_{i+1} − h_i| · Σ_j |S_j|``. What decays
with Δ is the mean ``|S_j|``: a bound, which the products themselves need not follow.

Source: Su 2021, https://kexue.fm/archives/8265; Su et al. 2021, arXiv 2104.09864.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core import registry
from attention_core.experiments.task import Load, load
from attention_core.inputs.positions import ALIBI, BASE, CHANNELS, Rope, rotary, side_by_side, speeds, unbiased
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.metrics.entropy import entropy

PLAIN, TURNED, BIASED = "plain", "turned", "biased"
"""Queries and keys without RoPE, with it, and with ALiBi in its place."""
EACH = 32
"""Distances up to this are all measured; beyond, a few per doubling tell as much."""


@dataclass(frozen=True, kw_only=True)
class DistanceTask:
    """One source with and without RoPE.

    Attributes:
        source: where the queries and keys come from; a synthetic one carries its seed.
        n: tokens.
        causal: whether the future is hidden.
        seed: the synthetic source's seed, for the rows.
    """

    source: Source
    n: int
    causal: bool
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceRow:
    """One head in one form: at one distance, or, where that is None, as a whole.

    Attributes:
        form: ``PLAIN``, ``TURNED`` or ``BIASED``.
        head: the head.
        seed: of a synthetic source.
        distance: tokens between query and key; what follows is the mean over all pairs that far apart of which one may
            see the other.
        weight: softmax's.
        logit: ``q·k / √d``.
        size: its absolute value.
        bound: what bounds that, turned.
        entropy: nats, softmax's, mean over queries; of the head as a whole.
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
    """One task per seed.

    Args:
        source: where the queries and keys come from.
        n: tokens.
        causal: whether the future is hidden.
        seeds: seeds of a synthetic source, from its own onwards; others have none.
    """
    return tuple(DistanceTask(source=seeded, n=n, causal=causal, seed=seed) for seed, seeded in source.reseeded(seeds))


def run(task: DistanceTask, *, load: Load = load) -> tuple[DistanceRow, ...]:
    """Measure both forms of one source, head by head: each as a whole, then distance by distance.

    Raises:
        LabError: if the source cannot be read at this length.
    """
    qkv, rows = task.source.at_length(task.n, task.n, load), []
    near, found = distances(qkv.n), forms(qkv, task.source)
    for form, (queries, keys) in found.items():
        for head, (q, k) in enumerate(zip(queries, keys, strict=True)):
            row = partial(DistanceRow, form=form, head=head, seed=task.seed)
            weights = registry.get("softmax").weights(q, k, causal=task.causal)
            logits = q @ k.mT / q.shape[-1] ** 0.5
            rows.append(row(entropy=float(entropy(weights).mean())))
            plain = (found[PLAIN][0][head], found[PLAIN][1][head]) if form == TURNED and PLAIN in found else None
            for distance in near:
                mean = partial(_mean, distance=distance, causal=task.causal)
                bound = _bound(*plain, distance, base(task.source), causal=task.causal) if plain else None
                rows.append(
                    row(
                        distance=distance,
                        weight=mean(weights),
                        logit=mean(logits),
                        size=mean(logits.abs()),
                        bound=bound,
                    )
                )
    return tuple(rows)


def forms(qkv: QKV, source: Source) -> dict[str, tuple[Tensor, Tensor]]:
    """The same queries and keys without RoPE and with it, ``[H, n, d]`` float64 each, pairs side by side.

    What RoPE has turned already is turned back for the one, all else is turned for the other. Only the turned form is
    there where a model turns in a way that is not known. Where ALiBi was chosen, its form is there as well.
    """
    q, k = qkv.q.double(), qkv.k.double()
    found = {BIASED: (q, k)} if source.positions == ALIBI else {}
    if found:
        q, k = unbiased(q, k)
    rope = source.own_rope or Rope()
    if rope.base is None:
        return {TURNED: (q, k)}
    if rope.halves:
        q, k = side_by_side(q), side_by_side(k)
    turned = source.rope is not None
    other = (rotary(q, rope.base, back=turned), rotary(k, rope.base, back=turned))
    return ({PLAIN: other, TURNED: (q, k)} if turned else {PLAIN: (q, k), TURNED: other}) | found


def size(qkv: QKV, source: Source) -> int:
    """Coordinates of a head that RoPE turns, or would."""
    return qkv.q.shape[-1] - (CHANNELS if source.positions == ALIBI else 0)


def base(source: Source) -> float:
    """How slowly the slowest pair turns, or would; not known for a model that is turned in its own way."""
    rope = source.own_rope
    return BASE if rope is None or rope.base is None else rope.base


def distances(n: int) -> tuple[int, ...]:
    """Distances to measure, ascending: up to three quarters of n, as few pairs are further apart."""
    last = 3 * n // 4
    steps = [*range(min(EACH, last) + 1)]
    while steps[-1] < last:
        steps.append(min(steps[-1] + max(steps[-1] // 12, 1), last))
    return tuple(steps)


def sums(distance: int, d: int, base: float = BASE) -> Tensor:
    """``|S_1| … |S_{d/2}|`` at a distance, ``[d // 2]`` float64."""
    angle = distance * speeds(d, base)
    return torch.polar(torch.ones_like(angle), angle).cumsum(0).abs()


def theory(over: Sequence[int], d: int, base: float = BASE) -> dict[str, list[float]]:
    """What RoPE alone makes of distances, each over its value at distance 0.

    Args:
        over: distances.
        d: size of a head; a single coordinate is not turned.
        base: how slowly the slowest pair turns.

    Returns:
        ``sums``: the mean of ``|S_j|``, the shape of the bound. ``cosines``: the mean of ``cos(Δ θ_i)``, the product of
        a query and a key that are alike and use all pairs alike.
    """
    if d < 2:
        return {"sums": [1.0] * len(over), "cosines": [1.0] * len(over)}
    start = float(sums(0, d, base).mean())
    return {
        "sums": [float(sums(x, d, base).mean()) / start for x in over],
        "cosines": [float((x * speeds(d, base)).cos().mean()) for x in over],
    }


def _bound(q: Tensor, k: Tensor, distance: int, base: float, *, causal: bool) -> float:
    """The mean of what bounds ``|q·k| / √d`` once queries and keys ``[n, d]``, not turned yet, are turned."""
    d, pairs = q.shape[-1], q.shape[-1] // 2
    total, means = float(sums(distance, d, base).sum()), []
    left, right = (torch.view_as_complex(x[:, : 2 * pairs].unflatten(-1, (pairs, 2)).contiguous()) for x in (q, k))
    for i, j in _ends(len(q), distance, causal=causal):
        products = torch.view_as_real(left[i] * right[j].conj())
        # The second zero is for a size of one, which has no pairs.
        steps = F.pad(products, (0, 0, 0, 2)).diff(dim=-2).norm(dim=-1).amax(-1)
        # An odd last coordinate is not turned: it adds what it is.
        rest = (q[i] * k[j])[:, 2 * pairs :].abs().sum(-1)
        means.append(float((steps * total + rest).mean()))
    return sum(means) / len(means) / d**0.5


def _ends(n: int, distance: int, *, causal: bool) -> Iterator[tuple[slice, slice]]:
    """The queries and keys so far apart, keys before queries first; as many each way."""
    near, far = slice(0, n - distance), slice(distance, n)
    yield far, near
    if distance and not causal:
        yield near, far


def _mean(matrix: Tensor, distance: int, *, causal: bool) -> float:
    """The mean over the entries ``[n, n]`` so far from the diagonal."""
    below = matrix.diagonal(-distance).mean()
    return float(below if causal else (below + matrix.diagonal(distance).mean()) / 2)
