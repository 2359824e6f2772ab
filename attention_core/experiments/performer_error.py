"""The error of Performer with increasing numbers of random features, for each kind of features."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from attention_core import registry
from attention_core.attention import Attention
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics import relative_error
from attention_core.ops.softmax.masked import causal_mask, normalise_rows, safe_divisor
from attention_core.variants.kernel.performer import PerformerParams, directions, estimate_and_kernel, phi

FEATURE_COUNTS = (8, 16, 32, 64, 128, 256, 512, 1024)
"""Numbers of features, doubling."""
FEATURE_KINDS = tuple((kind, orthogonal) for kind in ("positive", "hyperbolic", "trig") for orthogonal in (True, False))
"""Kinds of features that estimate softmax, each with orthogonal and with independent directions."""
SEEDS = 12
"""Number of draws of the directions: enough for stable quartiles."""
TOKENS = 256
"""Number of first tokens measured; each draw computes the features of these tokens and an n x n matrix."""


@dataclass(frozen=True, kw_only=True)
class PerformerErrorTask:
    """A task that measures Performer with one kind and number of features, for several seeds.

    Attributes:
        params: the settings of Performer, with the first seed; the following seeds are used too.
        factor: factor on every logit.
    """

    source: Source
    head: int
    causal: bool
    params: PerformerParams
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformerErrorRow:
    """The error for one random draw of the directions on which queries and keys are projected.

    Attributes:
        kind: as in ``PerformerParams``; so are ``orthogonal`` and ``features``.
        seed: seed of the draw.
        kernel: relative Frobenius error of the estimated similarities. Each row is first divided by its largest
            true similarity.
        matrix: relative Frobenius error of the normalized rows compared with softmax.
    """

    kind: str
    orthogonal: bool
    features: int
    seed: int
    kernel: float
    matrix: float


def effective_features(q: Tensor, k: Tensor, attention: Attention) -> tuple[float, int] | None:
    """Return the effective number of features in a row sum (the median over queries), and the number of features.

    The effective number is the participation ratio ``1 / Σ s²`` of the features' shares s of the row sum.

    Args:
        q: queries ``[..., n, d]``.
        k: keys ``[..., n, d]``.
        attention: any variant; the function returns None unless it is Performer with positive features.
    """
    p = attention.params
    if not isinstance(p, PerformerParams) or p.kind != "positive":
        return None
    W = directions(q, p)
    queries, keys = (phi(x, W, p).log for x in (q, k))
    assert queries is not None
    assert keys is not None
    shares = (queries + keys.logsumexp(-2, keepdim=True)).softmax(-1)
    return (1 / shares.square().sum(-1)).median().item(), p.features


def tasks(
    source: Source,
    *,
    head: int,
    causal: bool = False,
    row_norms: str = "chi",
    seed: int = 0,
    factor: float = 1.0,
    kinds: Sequence[tuple[str, bool]] = FEATURE_KINDS,
) -> tuple[PerformerErrorTask, ...]:
    """Return one task per kind and number of features, few features first.

    Args:
        source: source of the queries and keys.
        head: the head to measure.
        causal: whether a causal mask is used.
        row_norms: lengths of the directions, ``"fixed"`` or ``"chi"``.
        seed: the first seed.
        factor: positive factor on every logit, also in the softmax that is estimated.
        kinds: pairs of a kind of features and whether the directions are orthogonal.
    """
    return tuple(
        PerformerErrorTask(
            source=source,
            head=head,
            causal=causal,
            params=PerformerParams(features=features, kind=kind, orthogonal=orthogonal, row_norms=row_norms, seed=seed),
            factor=factor,
        )
        for features in FEATURE_COUNTS
        for kind, orthogonal in kinds
    )


def run(task: PerformerErrorTask, *, load: Load = load) -> tuple[PerformerErrorRow, ...]:
    """Measure the errors with every seed."""
    qkv = load(task.source, None)
    q, k = (task.factor**0.5 * x[task.head, :TOKENS].double() for x in (qkv.q, qkv.k))
    visible = causal_mask(len(q)) if task.causal else 1.0
    softmax = registry.get("softmax").weights(q, k, causal=task.causal)
    rows = []
    for seed in range(task.params.seed, task.params.seed + SEEDS):
        p = replace(task.params, seed=seed % 2**31)
        estimate, kernel = (x * visible for x in estimate_and_kernel(q, k, directions(q, p), p))
        largest = safe_divisor(kernel.amax(-1, keepdim=True))
        rows.append(
            PerformerErrorRow(
                kind=p.kind,
                orthogonal=p.orthogonal,
                features=p.features,
                seed=p.seed,
                kernel=float(relative_error(estimate / largest, kernel / largest)),
                matrix=float(relative_error(normalise_rows(estimate), softmax)),
            )
        )
    return tuple(rows)
