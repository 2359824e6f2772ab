"""What does another round of hashing find? Reformer's pairs, and the mass they hold, against the number of rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_core import registry
from attention_core.analysis.low_rank.factors import cosines
from attention_core.analysis.matrix.compare import visible
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.error import relative_error
from attention_core.variant import Attention
from attention_core.variants.sparse.reformer import ReformerParams, stretches

ROUNDS = tuple(range(1, 17))
"""Numbers of rounds: all that the variant allows."""
SEEDS = 5
"""Draws of the directions: enough to see how much is luck."""


@dataclass(frozen=True, kw_only=True)
class HashRoundsTask:
    """One number of rounds, with every seed.

    Attributes:
        source: what the queries come from.
        word: Reformer with its settings.
        head: the head looked at.
        causal: whether the future is hidden.
        rounds: how often the tokens are hashed.
    """

    source: Source
    word: str
    head: int
    causal: bool
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HashRoundsRow:
    """What some rounds find with one seed.

    Attributes:
        rounds: how often the tokens are hashed.
        seed: of the directions.
        pairs: the share of all pairs of two tokens that look.
        mass: the mean share of a query's full softmax (over every other token) that they hold.
        error: the relative Frobenius error of the matrix beside that softmax.
    """

    rounds: int
    seed: int
    pairs: float
    mass: float
    error: float


def tasks(
    source: Source, word: str, *, head: int, causal: bool = False, rounds: Sequence[int] = ROUNDS
) -> tuple[HashRoundsTask, ...]:
    """Every number of rounds, ascending; words that differ in their rounds alone have the same tasks.

    Args:
        source: what the queries come from.
        word: Reformer with its settings, as ``Attention.word`` writes them.
        head: the head looked at.
        causal: whether the future is hidden.
        rounds: numbers of rounds.
    """
    word = registry.from_word(word).with_settings(rounds=1).word
    return tuple(
        HashRoundsTask(source=source, word=word, head=head, causal=causal, rounds=number) for number in sorted(rounds)
    )


def run(task: HashRoundsTask, *, load: Load = load) -> tuple[HashRoundsRow, ...]:
    """Find the pairs of every seed, the given one first.

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


def likeness(vectors: np.ndarray, buckets: np.ndarray) -> tuple[float, ...]:
    """The mean cosine of two tokens of one bucket and of two buckets; NaN where there are no such two.

    Args:
        vectors: one per token, ``[n, d]``.
        buckets: one number per token, ``[n]``.
    """
    cosine, same = cosines(vectors, vectors), buckets[:, None] == buckets
    two = ~np.eye(len(buckets), dtype=bool)
    inside, outside = cosine[same & two], cosine[~same]
    return tuple(float(x.mean()) if x.size else float("nan") for x in (inside, outside))


def finders(parts: Mapping[str, np.ndarray], *, causal: bool) -> np.ndarray:
    """How many rounds let each pair of two tokens look, ``int [n, n]``.

    Args:
        parts: Reformer's anatomy of one head; causal it tells of the last stretch of queries alone, so that rows of
            earlier ones say what rounds of this stretch would let them.
        causal: whether the future is hidden.
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
    """The first query of the stretch that the anatomy tells of: 0 where nothing is causal."""
    assert isinstance(attention.params, ReformerParams)
    return stretches(n, attention.params, causal=causal)[-1][0]
