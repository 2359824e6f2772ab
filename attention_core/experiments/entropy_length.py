"""Measures whether attention spreads out with length: the entropy of each variant's rows at increasing lengths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import registry
from attention_core.attention import Attention
from attention_core.errors import InputError
from attention_core.experiments.lengths import measured_lengths
from attention_core.experiments.task import Load, load
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.limits import current
from attention_core.metrics.entropy import entropy, sparsity

BLOCK_ROWS = 64
"""Rows measured in one step, so that their float64 copies fit in the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class EntropyTask:
    """A task that measures one variant on one source at one length."""

    source: Source
    variant: str
    n: int
    longest: int
    causal: bool
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyRow:
    """The measurements of one head with one variant at one length; entropies are those of ``metrics.entropy``.

    Attributes:
        entropy: nats, mean over queries.
        normalised: entropy divided by the logarithm of the number of allowed keys, mean over queries with at least two
            allowed keys; None if no query has two.
        sparsity: ``E|a| / √(E a²)`` over the allowed keys, mean over queries.
        row_low: smallest row sum.
        row_high: largest row sum.
    """

    variant: str
    n: int
    head: int
    seed: int | None
    entropy: float
    normalised: float | None
    sparsity: float
    row_low: float
    row_high: float


def tasks(
    source: Source, variants: Sequence[str], *, longest: int, causal: bool = False, seeds: int = 1
) -> tuple[EntropyTask, ...]:
    """Return one task per variant, seed and length, short lengths first.

    Args:
        source: source of the queries and keys.
        variants: words of variants, which must support causal attention if ``causal`` is set.
        longest: the longest length in tokens.
        causal: whether a causal mask is used.
        seeds: number of consecutive seeds, from the synthetic source's own seed on; ignored for other sources.
    """
    return tuple(
        EntropyTask(source=seeded, variant=word, n=n, longest=longest, causal=causal, seed=seed)
        for n in measured_lengths(longest)
        for seed, seeded in source.reseeded(seeds)
        for word in variants
    )


def run(task: EntropyTask, *, load: Load = load) -> tuple[EntropyRow, ...]:
    """Measure one variant at one length, per head."""
    qkv = task.source.at_length(task.n, task.longest, load)
    key_counts = torch.arange(1, qkv.n + 1) if task.causal else torch.full((qkv.n,), qkv.m)
    has_several_keys = key_counts > 1
    rows = []
    for head, weights in enumerate(_head_matrices(registry.from_word(task.variant), qkv, causal=task.causal)):
        nats = torch.cat([entropy(block) for block in weights.split(BLOCK_ROWS)])
        sums = weights.sum(-1, dtype=torch.float64)
        normalised = nats[has_several_keys] / key_counts[has_several_keys].log()
        rows.append(
            EntropyRow(
                variant=task.variant,
                n=qkv.m,
                head=head,
                seed=task.seed,
                entropy=float(nats.mean()),
                normalised=float(normalised.mean()) if len(normalised) else None,
                sparsity=float(sparsity(weights, key_counts).mean()),
                row_low=float(sums.min()),
                row_high=float(sums.max()),
            )
        )
    return tuple(rows)


def _head_matrices(attention: Attention, qkv: QKV, *, causal: bool) -> Iterator[Tensor]:
    """Yield each head's matrix ``[n, n]``; all heads are computed in one step only if the variant couples them."""
    if not attention.variant.couples_heads:
        for q, k in zip(qkv.q, qkv.k, strict=True):
            yield attention.weights(q[None], k[None], causal=causal)[0]
        return
    max_tokens = int(current().sweep_tokens / qkv.heads**0.5)
    if qkv.m > max_tokens:
        raise InputError(
            "The heads of {title} depend on each other, so the matrices of all {heads} heads must fit into memory. "
            "They fit for up to {most} tokens, but the input has {n}.",
            title=attention.title,
            heads=qkv.heads,
            most=max_tokens,
            n=qkv.m,
        )
    yield from attention.weights(qkv.q, qkv.k, causal=causal)
