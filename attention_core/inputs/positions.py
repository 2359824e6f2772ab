"""How positions enter queries and keys before any variant sees them: as a source has them, not, by RoPE or by ALiBi."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from attention_core.errors import InputError, nearest
from attention_core.inputs.record import QKV, Notice

Positions = Literal["own", "none", "rope", "alibi"]
OWN: Positions = "own"
NONE: Positions = "none"
ROPE: Positions = "rope"
ALIBI: Positions = "alibi"
CHOICES: tuple[Positions, ...] = (OWN, NONE, ROPE, ALIBI)
"""Queries and keys as their source has them, without RoPE, with it, with ALiBi in its place."""
CHANNELS = 2
"""Coordinates that ALiBi adds."""

BASE = 10_000.0
"""How slowly the slowest pair of a rotary position embedding turns, where a model does not choose otherwise."""


HAS_IT = Notice("These queries and keys have RoPE already, and stay as they are.")
HAS_NONE = Notice("No RoPE is known to be in these queries and keys, so none is taken out: they stay as they are.")


@dataclass(frozen=True, kw_only=True)
class Rope:
    """How queries and keys are turned by their positions.

    Attributes:
        base: how slowly the slowest pair turns; None where they are turned in a way that is not known.
        halves: whether coordinates i and i + d/2 are a pair, as in transformers, and not neighbours.
    """

    base: float | None = BASE
    halves: bool = False

    def turn(self, x: Tensor, *, back: bool = False) -> Tensor:
        """Queries or keys turned by their positions, or turned back, in the order of their own coordinates.

        Args:
            x: ``[..., n, d]``.
            back: turn back what was turned.

        Raises:
            InputError: if how they are turned is not known.
        """
        if self.base is None:
            raise InputError(
                "How this model turns queries and keys by RoPE is not known, so they cannot be turned back; choose the "
                "positions as the input has them."
            )
        return rotary(x, self.base, back=back, halves=self.halves)


def placed(qkv: QKV, own: Rope | None, wanted: Positions) -> QKV:
    """A record with or without RoPE, or with ALiBi in its place, and a notice where that may surprise.

    Args:
        qkv: the record.
        own: how it has been turned; None where it has not, or nobody knows.
        wanted: one of ``CHOICES``.

    Raises:
        InputError: if it is to be turned back and how it was turned is not known, or ``wanted`` is none of them.
    """
    if wanted not in CHOICES:
        raise InputError(
            "There are no positions {wanted!r}. {hint}", wanted=str(wanted), hint=nearest(str(wanted), CHOICES)
        )
    if wanted == OWN:
        return qkv
    if wanted == ALIBI:
        plain = placed(qkv, own, NONE) if own else qkv
        q, k = biased(plain.q.double(), plain.k.double())
        return replace(plain, q=q.to(plain.q), k=k.to(plain.k))
    if (wanted == ROPE) == (own is not None):
        return replace(qkv, notices=(*qkv.notices, HAS_IT if own else HAS_NONE))
    rope = own or Rope()
    # In float64, so that there and back again is the same to float32's last digit.
    q, k = (rope.turn(x.double(), back=wanted == NONE).to(x) for x in (qkv.q, qkv.k))
    d = qkv.q.shape[-1]
    odd = Notice(
        "RoPE turns coordinates in pairs: of an odd head size of {d} the last one stays as it is.", (("d", d),)
    )
    return replace(qkv, q=q, k=k, notices=(*qkv.notices, *((odd,) if d % 2 else ())))


@dataclass(frozen=True, eq=False)
class Placed(Sequence[QKV]):
    """Records of layers, each as ``placed`` makes it when it is asked for."""

    layers: Sequence[QKV]
    own: Rope | None
    wanted: Positions

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[QKV]:
        return map(self.__getitem__, range(len(self.layers)))

    def __getitem__(self, layer: int) -> QKV:  # type: ignore[override]  # a layer, never a slice
        return placed(self.layers[layer], self.own, self.wanted)


def speeds(d: int, base: float) -> Tensor:
    """``θ_i``, how far each pair of coordinates turns from token to token, ``[d // 2]`` float64."""
    pairs = d // 2
    return base ** (-torch.arange(pairs, dtype=torch.float64) / max(pairs, 1))


@lru_cache(4)
def _angles(n: int, d: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine of how far each pair of each token is turned, ``[n, d // 2]`` float64.

    Angles reach n radians: float64 keeps them exact to far beyond what float32 coordinates can show.
    """
    angle = torch.arange(n, dtype=torch.float64).outer(speeds(d, base))
    return angle.cos(), angle.sin()


def rotary(x: Tensor, base: float = BASE, *, back: bool = False, halves: bool = False) -> Tensor:
    """Rotary position embedding: pair (2i, 2i+1) of token t is turned by the angle ``t base^(-2i/d)``.

    The inner product of a turned query and a turned key then depends on their distance, not on where they stand.
    Source: Su et al. 2021, arXiv 2104.09864. An odd last coordinate is left as it is.

    Args:
        x: ``[..., n, d]``.
        base: how slowly the slowest pair turns.
        back: turn back what was turned.
        halves: whether coordinates i and i + d/2 are a pair instead.
    """
    n, d = x.shape[-2:]
    pairs = d // 2
    cos, sin = (each.to(x.dtype) for each in _angles(n, d, base))
    if back:
        sin = -sin
    first, second = (slice(pairs), slice(pairs, 2 * pairs)) if halves else (slice(0, 2 * pairs, 2), slice(1, d, 2))
    left, right = x[..., first], x[..., second]
    turned = x.clone()
    turned[..., first] = left * cos - right * sin
    turned[..., second] = left * sin + right * cos
    return turned


def side_by_side(x: Tensor) -> Tensor:
    """Pairs (i, i + d/2), as transformers turns them, put side by side; products of queries and keys stay."""
    return x.unflatten(-1, (2, -1)).transpose(-2, -1).flatten(-2)


def slopes(heads: int) -> Tensor:
    """``m = 2^(-8h / H)`` for head h = 1 to H, what a token of distance takes off a score, ``[H]`` float64.

    Source: Press et al. 2021, arXiv 2108.12409.
    """
    return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


def biased(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys with two more coordinates, whose scores are those of before less ``m (i - j)``.

    ``[√(d'/d) q_i, -m i √d', m √d'] · [k_j, 1, j] / √d' = q_i · k_j / √d - m (i - j)`` with ``d' = d + 2``. For keys
    that are not later than the query that is ALiBi's bias, ``-m |i - j|``, which itself is no such product.

    Args:
        q: ``[H, n, d]``.
        k: likewise.

    Returns:
        Both, ``[H, n, d + 2]``.
    """
    heads, n, d = q.shape
    wider = d + CHANNELS
    m = slopes(heads).to(q)[:, None, None].expand(heads, n, 1)
    i = torch.arange(n).to(q)[:, None].expand(heads, n, 1)
    left = torch.cat([q / d**0.5, -m * i, m], -1) * wider**0.5
    return left, torch.cat([k, torch.ones_like(i), i], -1)


def unbiased(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The way back: queries and keys without the two coordinates."""
    wider = q.shape[-1]
    d = wider - CHANNELS
    return q[..., :d] * (d / wider) ** 0.5, k[..., :d]
