"""Kernel attention whose features are made for one block of tokens at a time, from logarithms of any size."""

from functools import partial

import torch
from torch import Tensor

from attention_core.algorithms.causal_scan import CHUNK, State, divided, fold, with_ones
from attention_core.algorithms.features import Map, paired
from attention_core.algorithms.scans import by_chunks

BLOCK = 2**16
"""Numbers in the features that exist at once where nothing is causal: 256 KiB of float32."""


def empty(phi: Map, q: Tensor, v: Tensor, *along: Tensor) -> State:
    """The state before any token, for queries ``[..., n, d]`` and values ``[..., n, d_v]`` such as these."""
    f = phi(q[..., :0, :], *(x[..., :0, :] for x in along))
    features = f.above(None) if f.log is None or f.base is not None else f.log
    *lead, _, d_v = v.shape
    sums = features.new_zeros(*lead, features.shape[-1], d_v + 1)
    if f.log is None:
        return State(sums, None)
    # Lower than any reference, yet finite: differences of two of them must not be NaN.
    return State(sums, f.log.new_full((*lead, 1, f.log.shape[-1]), torch.finfo(f.log.dtype).min))


def take(state: State, q: Tensor, k: Tensor, v: Tensor, *along: Tensor, phi: Map) -> tuple[Tensor, State]:
    """The next tokens of the causal form, one or a chunk, to their outputs and the next state."""
    f = paired(phi, q, k, *along, causal=True, start=state.reference)
    out, state = fold(state, f, with_ones(v.to(f.q.dtype)))
    return divided(out), state


def gather(state: State, k: Tensor, v: Tensor, *along: Tensor, phi: Map) -> tuple[None, State]:
    """A block of keys and values into the state, whose reference is each feature's largest key so far."""
    f = phi(k, *along)
    values = with_ones(v.to(state.sums.dtype))
    if f.log is None or state.reference is None:
        return None, State(state.sums + f.above(None).mT @ values, None)
    with torch.no_grad():
        reference = torch.maximum(state.reference, f.log.amax(-2, keepdim=True))
    fade = (state.reference - reference).exp().mT
    return None, State(state.sums * fade + f.above(reference).mT @ values, reference)


def read(state: State, q: Tensor, *along: Tensor, phi: Map) -> tuple[Tensor, State]:
    """A block of queries to their outputs, from a state that holds all keys."""
    f = phi(q, *along)
    if f.log is None or state.reference is None:
        return divided(f.above(None) @ state.sums), state
    log = f.log + state.reference
    queries = log.sub_(log.detach().amax(-1, keepdim=True)).exp_()
    return divided((queries if f.base is None else queries * f.base) @ state.sums), state


def streamed_attention(
    phi: Map, q: Tensor, k: Tensor, v: Tensor, *along: Tensor, causal: bool, size: int = CHUNK
) -> Tensor:
    """Each row of ``φ(q) φ(k)ᵀ`` divided by its sum, times ``v``, ``[..., n, d_v]``, in the type of the features.

    A row whose similarities sum to zero (all its features vanish) is a zero row.

    Args:
        phi: makes the features; what it closes over is constant.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        along: what else ``phi`` takes of each token, ``[n, *]`` each.
        causal: whether query i sees keys 0..i only.
        size: tokens per chunk of the causal form.
    """
    state = empty(phi, q, v, *along)
    if causal:
        out, _ = by_chunks(partial(take, phi=phi), state, q, k, v, *along, size=size)
    else:
        size = block_size(state.sums.shape[-2])
        _, state = by_chunks(partial(gather, phi=phi), state, k, v, *along, size=size)
        out, _ = by_chunks(partial(read, phi=phi), state, q, *along, size=size)
    return out


def block_size(features: int) -> int:
    """Tokens whose features exist at once where nothing is causal."""
    return max(16, min(256, BLOCK // features))


def streamed_cost(
    n: int, features: int, d_v: int, *, causal: bool, per_token: bool | None, size: int = CHUNK
) -> tuple[int, int]:
    """Multiply-adds (without those of ``phi``) and peak elements of ``streamed_attention`` for one head.

    Args:
        n: tokens.
        features: C.
        d_v: value size.
        causal: whether query i sees keys 0..i only.
        per_token: whether there is one logarithm per token, not one per feature; None where there are none.
        size: tokens per chunk of the causal form.
    """
    C, state = features, features * (d_v + 1)
    c = min(n, size if causal else block_size(C))
    # A block and its states, beside the outputs.
    if per_token is None:
        held = c * (2 * C + c + 4 * d_v + 4) + 2 * state if causal else c * (C + 2 * d_v + 2) + state
        peak = held + (n * d_v if n > c else 0)  # a single block's outputs are made before there is room for all
    elif causal:
        held = c * (4 * C + c + 2 * d_v) + 5 * state if per_token else c * (7 * C + c + 4 * d_v) + 4 * state
        peak = n * d_v + held
    else:
        peak = max(n * d_v + state, 4 * state) + c * (2 * C + 2 * d_v + 1)
    inside = n // c * c**2 + (n % c) ** 2 if causal else 0
    return 2 * n * state + inside * (C + d_v + 1), peak
