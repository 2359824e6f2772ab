"""The pairs that Reformer's hashing finds, and the softmax mass on them, against the number of hash rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_core import registry
from attention_core.analysis.low_rank.factors import cosines
from attention_core.analysis.matrix.compare import visible
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.approximation import relative_error
from attention_core.variant import Attention
from attention_core.variants.sparse.reformer import ReformerParams, stretches

ROUNDS = tuple(range(1, 17))
"""Numbers of rounds: all that the variant allows."""
SEEDS = 5
"""Seeds of the random directions: enough to show how much the result depends on them."""


@dataclass(frozen=True, kw_only=True)
class HashRoundsTask:
    """A task that measures one number of rounds with every seed.

    Attributes:
        source: source of the queries.
        word: Reformer with its settings.
        head: the head to measure.
        causal: whether a causal mask is used.
        rounds: how often the tokens are hashed.
    """

    source: Source
    word: str
    head: int
    causal: bool
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HashRoundsRow:
    """The pairs found by a number of rounds with one seed.

    Attributes:
        rounds: how often the tokens are hashed.
        seed: seed of the directions.
        pairs: share of all pairs of two tokens that attend to each other.
        mass: mean share of a query's full softmax (over every other token) on these pairs.
        error: relative Frobenius error of the matrix compared with that softmax.
    """

    rounds: int
    seed: int
    pairs: float
    mass: float
    error: float


def tasks(
    source: Source, word: str, *, head: int, causal: bool = False, rounds: Sequence[int] = ROUNDS
) -> tuple[HashRoundsTask, ...]:
    """Return one task per number of rounds, ascending; words that differ only in their rounds give the same tasks.

    Args:
        source: source of the queries.
        word: Reformer with its settings, as ``Attention.word`` writes them.
        head: the head to measure.
        causal: whether a causal mask is used.
        rounds: numbers of rounds.
    """
    word = registry.from_word(word).with_settings(rounds=1).word
    return tuple(
        HashRoundsTask(source=source, word=word, head=head, causal=causal, rounds=number) for number in sorted(rounds)
    )


def run(task: HashRoundsTask, *, load: Load = load) -> tuple[HashRoundsRow, ...]:
    """Measure the pairs found with each seed, the given seed first.

    Raises:
        LabError: if the source cannot be read.
    """
    qkv = load(task.source, None).of_head(task.head)
    given = registry.from_word(task.word)
    assert isinstance(given.params, ReformerParams)
    full = given.reference(qkv.q, qkv.k, causal=task.causal)
    possible = qkv.n * (qkv.n - 1) // (2 if task.causal else 1)
    rows = []
    for seed in range(given.params.seed, given.params.seed + SEEDS):
        seed %= 10_000
        attention = given.with_settings(rounds=task.rounds, seed=seed)
        seen = visible(qkv, attention, causal=task.causal)
        pairs = int((seen & ~torch.eye(qkv.n, dtype=torch.bool)).sum())
        rows.append(
            HashRoundsRow(
                rounds=task.rounds,
                seed=seed,
                pairs=pairs / max(1, possible),
                mass=float((full * seen).sum(-1).mean()),
                error=float(relative_error(attention.weights(qkv.q, qkv.k, causal=task.causal), full)),
            )
        )
    return tuple(rows)


def bucket_similarity(vectors: np.ndarray, buckets: np.ndarray) -> tuple[float, ...]:
    """Return the mean cosine of two tokens within one bucket and across buckets; NaN if there are no such pairs.

    Args:
        vectors: one per token, ``[n, d]``.
        buckets: one bucket number per token, ``[n]``.
    """
    cosine, same = cosines(vectors, vectors), buckets[:, None] == buckets
    two = ~np.eye(len(buckets), dtype=bool)
    inside, outside = cosine[same & two], cosine[~same]
    return tuple(float(x.mean()) if x.size else float("nan") for x in (inside, outside))


def rounds_per_pair(parts: Mapping[str, np.ndarray], *, causal: bool) -> np.ndarray:
    """Count the rounds that find each pair of two tokens, ``int [n, n]``.

    Args:
        parts: Reformer's anatomy of one head. A causal anatomy describes the last stretch of queries only; rows of
            earlier queries count the rounds of that stretch.
        causal: whether a causal mask is used.
    """
    chunks, buckets = parts["chunks"], parts["buckets"]
    behind = chunks[:, :, None] - chunks[:, None, :]
    near = (behind == 0) | (behind == 1)
    if causal:
        near &= buckets[:, :, None] == buckets[:, None, :]
    found = near.sum(0)
    np.fill_diagonal(found, 0)
    return np.tril(found) if causal else found


def last_stretch(n: int, attention: Attention, *, causal: bool) -> int:
    """Return the first query of the stretch that the anatomy describes: 0 without a causal mask."""
    assert isinstance(attention.params, ReformerParams)
    return stretches(n, attention.params, causal=causal)[-1][0]
