"""Changes the position encoding of recorded queries and keys: keeps it, removes RoPE, or applies RoPE or ALiBi."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from attention_core.errors import InputError, Notice, name_hint
from attention_core.inputs.record import QKV

Positions = Literal["own", "none", "rope", "alibi"]
OWN: Positions = "own"
NONE: Positions = "none"
ROPE: Positions = "rope"
ALIBI: Positions = "alibi"
CHOICES: tuple[Positions, ...] = (OWN, NONE, ROPE, ALIBI)
"""Position encodings to choose from: as in the source, without RoPE, with RoPE, and with ALiBi instead of RoPE."""
ALIBI_CHANNELS = 2
"""Number of coordinates that ALiBi adds to queries and keys."""

BASE = 10_000.0
"""Default base of RoPE's angles; a larger base makes the slowest pair rotate more slowly."""


ALREADY_APPLIED = Notice("RoPE has already been applied to these queries and keys, so it is not applied again.")
NOTHING_TO_REMOVE = Notice(
    "The lab knows of no RoPE that was applied to these queries and keys, so nothing is removed."
)


@dataclass(frozen=True, kw_only=True)
class Rope:
    """A rotary position embedding (RoPE) of queries and keys.

    Attributes:
        base: base of the angles; None if the rotation is unknown.
        halves: whether coordinates i and i + d/2 form a pair, as in transformers, instead of neighbours.
    """

    base: float | None = BASE
    halves: bool = False

    def rotate(self, x: Tensor, *, inverse: bool = False) -> Tensor:
        """Return queries or keys rotated by their positions, or rotated back, with the order of coordinates kept.

        Args:
            x: ``[..., n, d]``.
            inverse: whether to undo the rotation.

        Raises:
            InputError: if the rotation is unknown.
        """
        if self.base is None:
            raise InputError(
                "The rotation angles of this model's RoPE are not known, so RoPE cannot be removed. Set “Positions” "
                "to its default, “original”."
            )
        return rotary(x, self.base, inverse=inverse, halves=self.halves)


def with_positions(qkv: QKV, own_rope: Rope | None, requested: Positions) -> QKV:
    """Return a ``QKV`` with the requested position encoding, with a notice if some coordinates stay unchanged.

    Args:
        qkv: queries and keys with the source's own encoding.
        own_rope: the RoPE of ``qkv``, with base None if its angles are unknown; None for no RoPE.
        requested: one of ``CHOICES``.

    Raises:
        InputError: if an unknown rotation must be undone, ``requested`` is not one of ``CHOICES``, or the keys are
            those of another sequence.
    """
    if requested not in CHOICES:
        raise InputError(
            "The setting {wanted!r} for positions does not exist. {hint}",
            wanted=str(requested),
            hint=name_hint(str(requested), CHOICES),
        )
    if requested == OWN:
        return qkv
    if qkv.crosses:
        raise InputError(
            "RoPE and ALiBi use the distance between query and key in one sequence, but these keys come from another "
            "sequence. Set “Positions” to its default, “original”."
        )
    if requested == ALIBI:
        without_rope = with_positions(qkv, own_rope, NONE) if own_rope else qkv
        q, k = add_alibi(without_rope.q.double(), without_rope.k.double())
        return replace(without_rope, q=q.to(without_rope.q), k=k.to(without_rope.k))
    if (requested == ROPE) == (own_rope is not None):
        return replace(qkv, notices=(*qkv.notices, ALREADY_APPLIED if own_rope else NOTHING_TO_REMOVE))
    rope = own_rope or Rope()
    # The rotation is computed in float64, so that rotating back restores the float32 numbers exactly.
    q, k = (rope.rotate(x.double(), inverse=requested == NONE).to(x) for x in (qkv.q, qkv.k))
    d = qkv.q.shape[-1]
    odd_notice = Notice(
        "RoPE rotates pairs of coordinates. The head size {d} is odd, so the last coordinate is unchanged.", (("d", d),)
    )
    return replace(qkv, q=q, k=k, notices=(*qkv.notices, *((odd_notice,) if d % 2 else ())))


@dataclass(frozen=True, eq=False)
class PositionedLayers(Sequence[QKV]):
    """The ``QKV`` of each layer with the requested position encoding; ``with_positions`` computes each on access."""

    layers: Sequence[QKV]
    own_rope: Rope | None
    requested: Positions

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[QKV]:
        return map(self.__getitem__, range(len(self.layers)))

    def __getitem__(self, layer: int) -> QKV:  # type: ignore[override]  # The index is a layer, never a slice.
        return with_positions(self.layers[layer], self.own_rope, self.requested)


def rope_frequencies(d: int, base: float, device: torch.device | str = "cpu") -> Tensor:
    """Return ``base^(-2i/d)``, the angle by which pair i of coordinates rotates per token, ``[d // 2]`` float64."""
    pairs = d // 2
    return base ** (-torch.arange(pairs, dtype=torch.float64, device=device) / max(pairs, 1))


def _angles(x: Tensor, base: float) -> Tensor:
    """Return the angle by which each pair of each token of x, ``[..., n, d]``, rotates, ``[n, d // 2]`` float64.

    Angles are up to n radians. In float64, their rounding errors are far below the precision of float32.
    """
    n, d = x.shape[-2:]
    return torch.arange(n, dtype=torch.float64, device=x.device).outer(rope_frequencies(d, base, x.device))


def rotary(x: Tensor, base: float = BASE, *, inverse: bool = False, halves: bool = False) -> Tensor:
    """Apply a rotary position embedding: rotate pair (2i, 2i+1) of token t by the angle ``t base^(-2i/d)``.

    The inner product of a rotated query and key then depends on their distance, not on their positions. An odd last
    coordinate stays unchanged. Source: Su et al. 2021, arXiv 2104.09864.

    Args:
        x: ``[..., n, d]``.
        base: base of the angles.
        inverse: whether to undo the rotation.
        halves: whether coordinates i and i + d/2 form a pair instead.
    """
    d, angles = x.shape[-1], _angles(x, base)
    pairs, cos, sin = d // 2, angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    if inverse:
        sin = -sin
    first, second = (slice(pairs), slice(pairs, 2 * pairs)) if halves else (slice(0, 2 * pairs, 2), slice(1, d, 2))
    left, right = x[..., first], x[..., second]
    rotated = x.clone()
    rotated[..., first] = left * cos - right * sin
    rotated[..., second] = left * sin + right * cos
    return rotated


def adjacent_pairs(x: Tensor) -> Tensor:
    """Reorder pairs (i, i + d/2), as in transformers, into neighbours; products of queries and keys stay the same."""
    return x.unflatten(-1, (2, -1)).transpose(-2, -1).flatten(-2)


def alibi_slopes(heads: int) -> Tensor:
    """Return ALiBi's slopes ``m = 2^(-8h / H)`` for heads h = 1 to H, ``[H]`` float64.

    A slope is subtracted from a score for each token of distance. Source: Press et al. 2021, arXiv 2108.12409.
    """
    return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64, device="cpu") / heads)


def add_alibi(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Add two coordinates to queries and keys, so that the bias ``-m (i - j)`` is added to their scores.

    ``[√(d'/d) q_i, -m i √d', m √d'] · [k_j, 1, j] / √d' = q_i · k_j / √d - m (i - j)`` with ``d' = d + 2``. For keys
    not later than the query this is ALiBi's bias ``-m |i - j|``, which itself cannot be written as such a product.

    Args:
        q: queries, ``[H, n, d]``.
        k: keys, ``[H, n, d]``.

    Returns:
        Queries and keys, ``[H, n, d + 2]``.
    """
    heads, n, d = q.shape
    d_alibi = d + ALIBI_CHANNELS
    m = alibi_slopes(heads).to(q)[:, None, None].expand(heads, n, 1)
    i = torch.arange(n, device=q.device).to(q)[:, None].expand(heads, n, 1)
    biased_q = torch.cat([q / d**0.5, -m * i, m], -1) * d_alibi**0.5
    return biased_q, torch.cat([k, torch.ones_like(i), i], -1)


def remove_alibi(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Undo ``add_alibi``: return the queries with their original scale and the keys, ``[H, n, d]`` each."""
    d_alibi = q.shape[-1]
    d = d_alibi - ALIBI_CHANNELS
    return q[..., :d] * (d / d_alibi) ** 0.5, k[..., :d]
