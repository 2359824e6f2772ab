"""Kernel attention in which every similarity is multiplied by γ to the power of the distance between its tokens.

The powers of γ within a chunk are computed once, because they are the same for every chunk.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK
from attention_core.ops.linear.scans import by_chunks
from attention_core.ops.softmax.masked import at_least_float32, nonzero

Phi = Callable[[Tensor], Tensor]
"""A function from queries or keys, ``[..., n, d]``, to features, ``[..., n, C]``, none of them negative."""


class State(NamedTuple):
    """The state: ``Σ γ^(last - j) k_j v_jᵀ``, ``[..., C, d_v]``, and ``Σ γ^(last - j) k_jᵀ``, ``[..., 1, C]``."""

    sums: Tensor
    keys: Tensor


class DecayPowers(NamedTuple):
    """Powers of ``γ``, by which similarities decay over distances.

    Attributes:
        inside: between the tokens of a chunk, ``[c, c]``, zero above the diagonal.
        since: from the state before the chunk to each token, ``[c, 1]``.
        until: from each token to the last token of the chunk, ``[c, 1]``.
    """

    inside: Tensor
    since: Tensor
    until: Tensor

    def first(self, c: int) -> "DecayPowers":
        """Return the powers for a shorter chunk of c tokens."""
        return DecayPowers(self.inside[:c, :c], self.since[:c], self.until[len(self.until) - c :])


def decay_powers(decay: float, like: Tensor) -> DecayPowers:
    """Return the powers of ``γ`` for whole chunks, computed in float64."""
    steps = torch.arange(CHUNK + 1, dtype=torch.float64, device=like.device)
    powers = (decay**steps).to(like.dtype)
    falling = powers[:-1].flip(0)
    # Entry (i, j) of ``inside`` is γ^(i-j), so each row is the row above it, shifted by one.
    inside = F.pad(falling, (0, CHUNK - 1)).unfold(0, CHUNK, 1).flip(0)
    return DecayPowers(inside, powers[1:, None], falling[:, None])


def decayed_attention(phi: Phi, q: Tensor, k: Tensor, v: Tensor, *, decay: float, causal: bool) -> Tensor:
    """Return attention with similarities ``γ^|i-j| φ(q_i) · φ(k_j)``, each row over its sum, ``[..., n, d_v]``.

    Args:
        phi: computes the features; its closure must not change.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        decay: ``γ``, above 0, at most 1.
        causal: whether a query attends only to keys up to its own position.
    """
    powers = decay_powers(decay, at_least_float32(v[..., :0, :]))
    if causal:
        return by_chunks(partial(_take, phi=phi, decay=powers), None, q, k, v, size=CHUNK)[0]
    both = powers._replace(inside=torch.maximum(powers.inside, powers.inside.mT))
    sums, _ = by_chunks(partial(_take, phi=phi, decay=both, divide=False), None, q, k, v, size=CHUNK)
    into = sums[..., :-1] if sums.dtype == v.dtype else None
    return by_chunks(partial(_take, phi=phi, decay=powers), None, q, k, v, sums, size=CHUNK, reverse=True, into=into)[0]


def decayed_cost(n: int, features: int, d_v: int, *, causal: bool) -> tuple[int, int]:
    """Return multiply-adds (without those of ``phi``) and peak elements of ``decayed_attention`` for one head."""
    C, c = features, min(n, CHUNK)
    inside = n // c * c**2 + (n % c) ** 2
    # All n tokens are added to the state, but the first chunk does not read it, because no token is before it.
    adds, peak = inside * (C + d_v) + (2 * n - c) * C * d_v, CHUNK**2 + c * (c + 4 * C + d_v) + 2 * C * d_v
    if causal:
        return adds, n * d_v + peak
    last = n % c or c  # the first chunk of the pass over later tokens
    return adds + (2 * n - last) * C * d_v, n * (d_v + 1) + peak + CHUNK**2 + c * d_v


def _take(
    state: State | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sums: Tensor | None = None,
    *,
    phi: Phi,
    decay: DecayPowers,
    divide: bool = True,
) -> tuple[Tensor, State]:
    """Return the outputs of a chunk and the state after it.

    Args:
        state: the state before the chunk, None for the first.
        q: the chunk's queries; ``k`` and ``v`` its keys and values. They are in reverse order if the state is that of
            later tokens.
        k: see ``q``.
        v: see ``q``.
        sums: the queries' sums over the chunk itself and earlier tokens, ``[..., c, d_v + 1]``, with the sum of
            each row's similarities as last column; None to compute it from the chunk.
        phi: computes the features.
        decay: the powers of γ.
        divide: whether outputs are divided by their row's sum; otherwise they are returned as ``sums`` is.
    """
    decay, dtype = decay.first(q.shape[-2]), v.dtype
    q, k, v = phi(at_least_float32(q)), phi(at_least_float32(k)), at_least_float32(v)
    if sums is None:
        inside = (q @ k.mT).mul_(decay.inside)
        out, total = inside @ v, inside.sum(-1, keepdim=True)
    else:
        out, total = sums[..., :-1].clone(), sums[..., -1:].clone()
    k = k * decay.until
    added, keys = k.mT @ v, k.sum(-2, keepdim=True)
    if state is not None:
        q = q * decay.since
        out += q @ state.sums
        total += (q * state.keys).sum(-1, keepdim=True)
        added += state.sums * decay.since[-1]
        keys += state.keys * decay.since[-1]
    after = State(added, keys)
    return (out.div_(nonzero(total)).to(dtype) if divide else torch.cat([out, total], -1)), after
