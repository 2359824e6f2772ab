"""Causal kernel attention that forgets by one constant: how much fades inside a chunk is the same for every chunk."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK
from attention_core.ops.linear.scans import by_chunks
from attention_core.ops.softmax.masked import nonzero, widened

Phi = Callable[[Tensor], Tensor]
"""Makes features of queries or keys, ``[..., n, d]`` to ``[..., n, C]``, none below zero."""


class State(NamedTuple):
    """What is remembered: ``Σ γ^(last - j) k_j v_jᵀ``, ``[..., C, d_v]``, and of the keys alone, ``[..., 1, C]``."""

    sums: Tensor
    keys: Tensor


class Fade(NamedTuple):
    """What is left of a similarity, ``γ`` to the power of the distance.

    Attributes:
        inside: between the tokens of a chunk, ``[c, c]``, zero above the diagonal.
        since: of the state before the chunk, at each of its tokens, ``[c, 1]``.
        until: of each token, at the chunk's last, ``[c, 1]``.
    """

    inside: Tensor
    since: Tensor
    until: Tensor

    def first(self, c: int) -> "Fade":
        """That of a chunk of so few tokens."""
        return Fade(self.inside[:c, :c], self.since[:c], self.until[len(self.until) - c :])


def fading(decay: float, like: Tensor) -> Fade:
    """The powers of ``γ`` for whole chunks, worked out in float64."""
    steps = torch.arange(CHUNK + 1, dtype=torch.float64, device=like.device)
    powers = (decay**steps).to(like.dtype)
    falling = powers[:-1].flip(0)
    # Each row begins where the one below it does but one.
    inside = F.pad(falling, (0, CHUNK - 1)).unfold(0, CHUNK, 1).flip(0)
    return Fade(inside, powers[1:, None], falling[:, None])


def decayed_attention(phi: Phi, q: Tensor, k: Tensor, v: Tensor, *, decay: float) -> Tensor:
    """``γ^(i-j) φ(q_i) · φ(k_j)`` of the keys so far, rows over their sum, times v, ``[..., n, d_v]``.

    Args:
        phi: makes the features; what it closes over is constant.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        decay: ``γ``, above 0, at most 1.
    """
    take = partial(_take, phi=phi, fade=fading(decay, widened(v[..., :0, :])))
    out, _ = by_chunks(take, None, q, k, v, size=CHUNK)
    return out.to(v.dtype)


def decayed_cost(n: int, features: int, d_v: int) -> tuple[int, int]:
    """Multiply-adds (without those of ``phi``) and peak elements of ``decayed_attention`` for one head."""
    C, c = features, min(n, CHUNK)
    inside = n // c * c**2 + (n % c) ** 2
    # The first chunk has no state to read.
    adds = inside * (C + d_v) + (2 * n - c) * C * d_v
    return adds, n * d_v + CHUNK**2 + c * (c + 4 * C + d_v) + 2 * C * d_v


def _take(state: State | None, q: Tensor, k: Tensor, v: Tensor, *, phi: Phi, fade: Fade) -> tuple[Tensor, State]:
    """A chunk to its outputs and the state after it."""
    fade = fade.first(q.shape[-2])
    q, k, v = phi(widened(q)), phi(widened(k)), widened(v)
    inside = (q @ k.mT).mul_(fade.inside)
    out, total = inside @ v, inside.sum(-1, keepdim=True)
    k = k * fade.until
    sums, keys = k.mT @ v, k.sum(-2, keepdim=True)
    if state is not None:
        q = q * fade.since
        out += q @ state.sums
        total += (q * state.keys).sum(-1, keepdim=True)
        sums += state.sums * fade.since[-1]
        keys += state.keys * fade.since[-1]
    out /= nonzero(total)
    return out, State(sums, keys)
