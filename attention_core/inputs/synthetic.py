"""Synthetic sequences: queries, keys and values with a known structure, determined by a seed.

The setting ``sharpness`` multiplies the logits. At sharpness 1, the variance of the logits ``q·k / √d`` within a row,
averaged over the rows of a head, is one. This holds for every kind of sequence, so that kinds can be compared.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from attention_core.errors import InputError, Name, name_hint
from attention_core.inputs.kinds import KINDS, SyntheticKind
from attention_core.inputs.positions import rotary
from attention_core.inputs.record import QKV
from attention_core.limits import current
from attention_core.ops.random import generator

MAX_SHARPNESS = 1e3
"""Maximum sharpness, at which the logits are still far within the range of float32."""


@dataclass(frozen=True, kw_only=True)
class SyntheticSpec:
    """The settings of a synthetic sequence.

    Attributes:
        kind: key of one of ``KINDS``.
        n: number of tokens.
        d: size of queries, keys and values.
        heads: number of heads, each with its own random numbers.
        sharpness: factor on the logits; 0 makes attention uniform.
        seed: seed of the random numbers.
        rope: whether RoPE rotates queries and keys.
        causal: whether the ``QKV`` is marked as hiding future keys.
    """

    kind: str = "locally_correlated"
    n: int = 128
    d: int = 32
    heads: int = 4
    sharpness: float = 1.0
    seed: int = 0
    rope: bool = False
    causal: bool = False

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, np.generic):  # equal specs need the same repr, which is part of links and cache keys
                object.__setattr__(self, each.name, value.item())


def from_synthetic(spec: SyntheticSpec) -> QKV:
    """Return queries, keys and values, ``[H, n, d]``, as a ``QKV``; values have mean square one.

    Raises:
        InputError: for an unknown kind or a number out of bounds.

    Example:
        >>> import attention_core as ac
        >>> ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=16, d=8, heads=2))
        QKV('synthetic locally_correlated, seed 0', 2 heads × 16 tokens × 8, causal=False, 0 notices)
    """
    kind = _checked(spec)
    q, k, v, tokens = kind.draw((spec.heads, spec.n, spec.d), _generator(spec.seed))
    if spec.rope:
        q, k = rotary(q), rotary(k)
    return QKV.of_tokens(
        q * (spec.sharpness * _to_unit_logits(q, k)),
        k,
        v / v.square().mean((-2, -1), keepdim=True).sqrt(),
        tuple(tokens or (f"t{i}" for i in range(spec.n))),
        causal=spec.causal,
        origin=f"synthetic {kind.key}, seed {spec.seed}",
    )


def _generator(seed: int) -> torch.Generator:
    # torch uses only the lowest 32 bits of a seed, so a larger seed would give the numbers of a smaller one.
    return torch.Generator().manual_seed(seed) if seed < 2**32 else generator(seed)


def _checked(spec: SyntheticSpec) -> SyntheticKind:
    limits = current()
    known = {kind.key: kind for kind in KINDS}
    if spec.kind not in known:
        raise InputError(
            "There is no kind of synthetic input called {kind!r}. {hint}",
            kind=spec.kind,
            hint=name_hint(spec.kind, known),
        )
    for name, value, low, high in (
        ("n", spec.n, 1, limits.synthetic_tokens),
        ("d", spec.d, 1, limits.head_size),
        ("heads", spec.heads, 1, limits.heads),
        ("seed", spec.seed, 0, 2**63 - 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError(
                "{name} is {value!r}. Choose a whole number from {low} to {high}.",
                name=Name(name),
                value=value,
                low=low,
                high=high,
            )
    if not 0 <= spec.sharpness <= MAX_SHARPNESS:
        raise InputError(
            "sharpness is {value!r}. Choose a number from 0 to {high}.", value=spec.sharpness, high=int(MAX_SHARPNESS)
        )
    if spec.heads * spec.n * spec.d > limits.synthetic_numbers:
        raise InputError(
            "{heads} heads × {n} tokens × size {d} = {count} numbers. Choose smaller values, so that the product is "
            "at most {limit}.",
            heads=spec.heads,
            n=spec.n,
            d=spec.d,
            count=spec.heads * spec.n * spec.d,
            limit=limits.synthetic_numbers,
        )
    return known[spec.kind]


def _to_unit_logits(q: Tensor, k: Tensor) -> Tensor:
    """Return the factor per head, ``[H, 1, 1]``, that scales a row's logits to unit standard deviation on average.

    The variance over keys, averaged over queries, is computed from the d x d second moments in O(n d²). The mean of
    a row is subtracted, because softmax ignores it.
    """
    n, d = q.shape[-2:]
    k = k - k.mean(-2, keepdim=True)
    variance = ((q.mT @ q) * (k.mT @ k)).sum((-2, -1), keepdim=True) / (n * n * d)
    return torch.where(variance > 0, variance.rsqrt(), 1.0)  # with a single key, the variance is 0
