"""Kernel attention in which the similarity of a query and a key is multiplied by γ to the power of their distance.

The powers of γ within a chunk are computed once, because they are the same for every chunk.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK, chunk_size
from attention_core.ops.linear.scans import scan_chunks
from attention_core.ops.softmax.masked import at_least_float32, safe_divisor

Phi = Callable[[Tensor], Tensor]
"""A function from queries or keys, ``[..., n, d]``, to features, ``[..., n, C]``, none of them negative."""


class State(NamedTuple):
    """Decayed sums over the tokens j up to the latest one, ``last``.

    Attributes:
        sums: ``Σ γ^(last - j) k_j v_jᵀ``, ``[..., C, d_v]``.
        key_sums: ``Σ γ^(last - j) k_jᵀ``, ``[..., 1, C]``.
    """

    sums: Tensor
    key_sums: Tensor


class DecayPowers(NamedTuple):
    """Powers of the decay factor ``γ`` of similarities, by distance.

    Attributes:
        within: between the tokens of a chunk, ``[c, c]``, zero above the diagonal.
        from_start: from the state before the chunk to each token, ``[c, 1]``.
        to_end: from each token to the last token of the chunk, ``[c, 1]``.
    """

    within: Tensor
    from_start: Tensor
    to_end: Tensor

    def shortened(self, c: int) -> "DecayPowers":
        """Return the powers for a shorter chunk of c tokens."""
        return DecayPowers(self.within[:c, :c], self.from_start[:c], self.to_end[len(self.to_end) - c :])


def decay_powers(decay: float, like: Tensor, size: int) -> DecayPowers:
    """Return the powers of ``γ`` for whole chunks of ``size`` tokens, computed in float64."""
    steps = torch.arange(size + 1, dtype=torch.float64, device=like.device)
    powers = (decay**steps).to(like.dtype)
    decreasing = powers[:-1].flip(0)
    # Entry (i, j) of ``within`` is γ^(i-j), so each row is the row above it, shifted by one.
    within = F.pad(decreasing, (0, size - 1)).unfold(0, size, 1).flip(0)
    return DecayPowers(within, powers[1:, None], decreasing[:, None])


def decayed_attention(phi: Phi, q: Tensor, k: Tensor, v: Tensor, *, decay: float, causal: bool) -> Tensor:
    """Return attention with similarities ``γ^|i-j| φ(q_i) · φ(k_j)``, each row divided by its sum, ``[..., n, d_v]``.

    Args:
        phi: computes the features; the backward pass calls it again, so its closure must not change.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        decay: ``γ``, above 0, at most 1.
        causal: whether a query attends only to keys up to its own position.
    """
    size = min(k.shape[-2], chunk_size(k))
    powers = decay_powers(decay, at_least_float32(v[..., :0, :]), size)
    if causal:
        return scan_chunks(partial(_attend_chunk, phi=phi, decay=powers), None, q, k, v, size=size)[0]
    two_sided = powers._replace(within=torch.maximum(powers.within, powers.within.mT))
    sums, _ = scan_chunks(partial(_attend_chunk, phi=phi, decay=two_sided, divide=False), None, q, k, v, size=size)
    result = sums[..., :-1] if sums.dtype == v.dtype else None
    step = partial(_attend_chunk, phi=phi, decay=powers)
    return scan_chunks(step, None, q, k, v, sums, size=size, reverse=True, result=result)[0]


def decayed_cost(n: int, features: int, d_v: int, *, causal: bool) -> tuple[int, int]:
    """Return multiply-adds (without those of ``phi``) and peak elements of ``decayed_attention`` for one head."""
    C, c = features, min(n, CHUNK)
    chunk_pairs = n // c * c**2 + (n % c) ** 2
    # All n tokens are added to the state, but only n - c tokens read it: the state is still empty in the first chunk.
    adds, peak = chunk_pairs * (C + d_v) + (2 * n - c) * C * d_v, c * (2 * c + 4 * C + d_v) + 2 * C * d_v
    if causal:
        return adds, n * d_v + peak
    last = n % c or c  # tokens in the last chunk, with which the reverse pass starts
    return adds + (2 * n - last) * C * d_v, n * (d_v + 1) + peak + c * (c + d_v)


def _attend_chunk(
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
        divide: whether outputs are divided by their row's sum; otherwise the sum is returned as last column.
    """
    decay, dtype = decay.shortened(q.shape[-2]), v.dtype
    q, k, v = phi(at_least_float32(q)), phi(at_least_float32(k)), at_least_float32(v)
    if sums is None:
        products = (q @ k.mT).mul_(decay.within)
        out, row_sums = products @ v, products.sum(-1, keepdim=True)
    else:
        out, row_sums = sums[..., :-1].clone(), sums[..., -1:].clone()
    k = k * decay.to_end
    sums_update, key_sums = k.mT @ v, k.sum(-2, keepdim=True)
    if state is not None:
        q = q * decay.from_start
        out += q @ state.sums
        row_sums += (q * state.key_sums).sum(-1, keepdim=True)
        sums_update += state.sums * decay.from_start[-1]
        key_sums += state.key_sums * decay.from_start[-1]
    out = out.div_(safe_divisor(row_sums)).to(dtype) if divide else torch.cat([out, row_sums], -1)
    return out, State(sums_update, key_sums)
