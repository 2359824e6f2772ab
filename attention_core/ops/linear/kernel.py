"""Kernel attention (linear attention): the similarity of a query and a key is the product of their features.

Sums over keys and values can therefore be computed before any query is known. Source: Katharopoulos et al. 2020, arXiv
2006.16236.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from attention_core.ops.linear.causal_scan import (
    CHUNK,
    State,
    apply_normaliser,
    causal_attention,
    causal_multiply_adds,
    scan_step,
    with_ones,
)
from attention_core.ops.linear.features import Features, Phi, feature_pair
from attention_core.ops.linear.scans import needs_gradient
from attention_core.ops.linear.streamed_kernel import initial_state, streamed_attention, streamed_cost
from attention_core.ops.softmax.masked import safe_divisor


def kernel_attention(
    phi: Phi, q: Tensor, k: Tensor, v: Tensor, *extras: Tensor, causal: bool, mode: str = "chunked", size: int = CHUNK
) -> Tensor:
    """Return the similarities, each row divided by its sum, times ``v``: ``[..., n, d_v]``, in O(n C d_v) time.

    A row whose similarities sum to zero is a zero row. Features exist for one block of tokens at a time, unless
    gradients are needed: the backward pass would have to compute them again. The output has the type of ``v``.

    Args:
        phi: computes the features; the backward pass calls it again, so its closure must not change.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        extras: further inputs of ``phi`` per token, ``[n, *]`` each.
        causal: whether query i attends to keys 0..i only.
        mode: the causal algorithm, ``"chunked"`` or ``"cumsum"``.
        size: tokens per chunk of the causal form, if no gradients are needed.
    """
    if not needs_gradient(q, k, v) and not (causal and mode == "cumsum"):
        return streamed_attention(phi, q, k, v, *extras, causal=causal, size=size if causal else None)
    f = feature_pair(phi, q, k, *extras, causal=causal)
    values = v.to(f.q.dtype)
    if causal:
        return causal_attention(f, values, mode=mode, normalise=True).to(v.dtype)
    out = f.q @ (f.k.mT @ values)
    out /= safe_divisor(f.q @ f.k.sum(-2, keepdim=True).mT)
    return out.to(v.dtype)


def kernel_step(state: State, f: Features, v: Tensor) -> tuple[Tensor, State]:
    """Return the output of one token, features ``[..., 1, C]`` and value ``[..., d_v]``, and the next state."""
    out, state = scan_step(state, f, with_ones(v.unsqueeze(-2).to(f.q.dtype)))
    return apply_normaliser(out).squeeze(-2).to(v.dtype), state


def kernel_decoder(phi: Phi) -> tuple[Callable[..., State], Callable[..., tuple[Tensor, State]]]:
    """Return ``init_state`` and ``step`` of a ``Decoder`` whose features are ``phi(x, p)`` for the settings p."""

    def init_state(q: Tensor, v: Tensor, p: Any) -> State:  # noqa: ANN401 - each variant has its own settings
        return initial_state(partial(phi, p=p), q.unsqueeze(-2), v.unsqueeze(-2))

    def step(state: State, q: Tensor, k: Tensor, v: Tensor, p: Any) -> tuple[Tensor, State]:  # noqa: ANN401
        q, k = q.unsqueeze(-2), k.unsqueeze(-2)
        return kernel_step(state, feature_pair(partial(phi, p=p), q, k, causal=True, previous=state.reference), v)

    return init_state, step


def kernel_cost(
    n: int,
    features: int,
    d_v: int,
    *,
    causal: bool,
    mode: str = "chunked",
    referenced: bool = False,
    size: int = CHUNK,
    keys: int | None = None,
    copies: int = 2,
) -> tuple[int, int]:
    """Return multiply-adds and peak elements of ``kernel_attention`` for one head, or of its decoder (``"recurrent"``).

    Args:
        n: tokens.
        features: C.
        d_v: value size.
        causal: whether query i attends to keys 0..i only.
        mode: the causal algorithm.
        referenced: whether the causal features have references.
        size: tokens per chunk of the causal form.
        keys: number of keys; n for None.
        copies: as in ``streamed_cost``.
    """
    C, columns = features, d_v + 1
    if not causal or mode == "chunked":
        referenced = causal and referenced
        block = size if causal else None
        return streamed_cost(n, C, d_v, causal=causal, referenced=referenced, size=block, keys=keys, copies=copies)
    adds = causal_multiply_adds(n, C, d_v, mode=mode, normalise=True, referenced=referenced)
    if mode == "recurrent":
        return adds, 2 * n * d_v + 4 * C * columns
    return adds, n * C * (2 + referenced) + n * columns + 2 * n * C * columns
