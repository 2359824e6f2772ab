"""Kernel attention whose features exist for one block of tokens at a time, to bound memory.

Features are given as logarithms, so that they do not overflow.
"""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.linear.causal_scan import CHUNK, State, apply_normaliser, empty_state, scan_step, with_ones
from attention_core.ops.linear.features import Features, LogFeatures, Phi, exceeds_spread, feature_pair
from attention_core.ops.linear.scans import scan_chunks
from attention_core.ops.softmax.masked import safe_divisor

BLOCK = 2**15
"""Numbers in the features of one block of one head without a causal mask: 128 KiB of float32."""


def initial_state(phi: Phi, q: Tensor, v: Tensor, *extras: Tensor) -> State:
    """Return the state before any token, for queries ``[..., n, d]`` and values ``[..., n, d_v]``."""
    f = phi(q[..., :0, :], *(x[..., :0, :] for x in extras))
    features = f.relative_to(None) if f.log is None or f.base is not None else f.log
    references = 0 if f.log is None else f.log.shape[-1]
    return empty_state(features.shape[-1], v[..., 0, :].to(features.dtype), normalise=True, references=references)


def attend_chunk(state: State, q: Tensor, k: Tensor, v: Tensor, *extras: Tensor, phi: Phi) -> tuple[Tensor, State]:
    """Return the outputs of the next one or more tokens of the causal form, and the next state.

    The reference of a token is the running maximum of the keys' logarithms, per feature. If no maximum increases by
    more than ``features.SPREAD`` within the chunk, all tokens use the maxima at the chunk's last token.
    """
    f = phi(k, *extras)
    values = with_ones(v.to(state.sums.dtype))
    if f.log is None or state.reference is None:
        out, state = scan_step(state, Features(phi(q, *extras).relative_to(None), f.relative_to(None)), values)
        return apply_normaliser(out).to(v.dtype), state
    previous = state.reference
    with torch.no_grad():
        first_reference = torch.maximum(previous, f.log[..., :1, :])
        reference = torch.maximum(previous, f.log.amax(-2, keepdim=True))
    if exceeds_spread(first_reference, reference):
        out, state = scan_step(state, feature_pair(phi, q, k, *extras, causal=True, previous=previous), values)
        return apply_normaliser(out).to(v.dtype), state
    keys = f.relative_to(reference)
    del f  # to free the features of keys before those of queries are computed
    queries = query_features(phi(q, *extras), reference)
    sums = state.sums * (previous - reference).exp().mT
    out = queries @ sums
    out += (queries @ keys.mT).tril_() @ values
    return apply_normaliser(out).to(v.dtype), State((keys.mT @ values).add_(sums), reference)


def query_features(f: LogFeatures, reference: Tensor) -> Tensor:
    """Return query features times ``e^reference``, ``[..., n, C]``, for keys that are divided by ``e^reference``.

    The exponentials of each row are divided by the largest of the row.
    """
    assert f.log is not None
    log = f.log + reference
    exponential = log.sub_(log.detach().amax(-1, keepdim=True)).exp_()
    return exponential if f.base is None else exponential * f.base


class KeySums(NamedTuple):
    """Sums over all keys, for attention without a causal mask.

    Attributes:
        products: ``Σ_j e^{log k_j - R} v_jᵀ``, ``[..., C, d_v]``.
        total: ``Σ_j e^{log k_j - R}``, ``[..., 1, C]``, for the normaliser. A row is stored, because products with
            a row are faster than with a column.
        reference: ``R``, each key feature's largest logarithm, ``[..., 1, C]``; None without logarithms.
    """

    products: Tensor
    total: Tensor
    reference: Tensor | None


def sum_over_keys(phi: Phi, k: Tensor, v: Tensor, *extras: Tensor, size: int) -> KeySums:
    """Return the sums over all keys, ``size`` tokens at a time; arguments are those of ``streamed_attention``."""
    sums, reference = initial_state(phi, k, v, *extras)
    state = KeySums(sums[..., :-1], sums[..., -1:].mT, reference)
    return scan_chunks(partial(_add_keys, phi=phi), state, k, v, *extras, size=size)[1]


def _add_keys(state: KeySums, k: Tensor, v: Tensor, *extras: Tensor, phi: Phi) -> tuple[None, KeySums]:
    f, (products, total, reference) = phi(k, *extras), state
    if f.log is not None and state.reference is not None:
        with torch.no_grad():
            reference = torch.maximum(state.reference, f.log.amax(-2, keepdim=True))
            decay = (state.reference - reference).exp()
        products, total = products * decay.mT, total * decay
    features = f.relative_to(reference)
    products = (features.mT @ v.to(features.dtype)).add_(products)
    ones = features.new_ones(1, features.shape[-2])
    return None, KeySums(products, (ones @ features).add_(total), reference)


def _read_sums(state: KeySums, q: Tensor, *extras: Tensor, phi: Phi, dtype: torch.dtype) -> tuple[Tensor, KeySums]:
    f = phi(q, *extras)
    features = f.relative_to(None) if state.reference is None else query_features(f, state.reference)
    out = features @ state.products
    out /= safe_divisor((state.total @ features.mT).mT)
    return out.to(dtype), state


def streamed_attention(
    phi: Phi, q: Tensor, k: Tensor, v: Tensor, *extras: Tensor, causal: bool, size: int | None = None
) -> Tensor:
    """Return ``φ(q) φ(k)ᵀ``, each row divided by its sum, times ``v``, ``[..., n, d_v]``, in the type of ``v``.

    A row whose similarities sum to zero is a zero row.

    Args:
        phi: computes the features; the backward pass calls it again, so its closure must not change.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        extras: further inputs of ``phi`` per token, ``[n, *]`` each.
        causal: whether query i attends to keys 0..i only.
        size: tokens per block; None for the default, which suits several heads. On a GPU, blocks longer than one token
            are enlarged.
    """
    state = initial_state(phi, q, v, *extras)
    features, heads = state.sums.shape[-2], math.prod(state.sums.shape[:-2])
    size = size or default_block_size(features, causal=causal)
    if size > 1:
        size = step_size(size, v.device, numbers=heads * features, per_pair=heads if causal else 0)
    if causal:
        out, _ = scan_chunks(partial(attend_chunk, phi=phi), state, q, k, v, *extras, size=size)
    else:
        sums = sum_over_keys(phi, k, v, *extras, size=size)
        out, _ = scan_chunks(partial(_read_sums, phi=phi, dtype=v.dtype), sums, q, *extras, size=size)
    return out


def default_block_size(features: int, *, causal: bool) -> int:
    """Return the tokens per block if all heads are computed together."""
    return CHUNK if causal else max(16, min(512, BLOCK // features))


def streamed_cost(
    n: int,
    features: int,
    d_v: int,
    *,
    causal: bool,
    referenced: bool,
    size: int | None = None,
    keys: int | None = None,
    copies: int = 2,
) -> tuple[int, int]:
    """Return multiply-adds (without those of ``phi``) and peak elements of ``streamed_attention`` for one head.

    Args:
        n: tokens.
        features: C.
        d_v: value size.
        causal: whether query i attends to keys 0..i only.
        referenced: whether the features have logarithms, which need a reference.
        size: tokens per block, as in ``streamed_attention``.
        keys: number of keys; n for None.
        copies: how many tensors of the features' size ``phi`` holds at a time; used only if not causal and not
            ``referenced``.
    """
    C, state, m = features, features * (d_v + 1), keys or n
    size = size or default_block_size(C, causal=causal)
    c, key_block = min(n, size), min(m, size)
    # The peak is the memory of a block, its states and all outputs. If there is a single block, its result is the
    # output, and no second tensor is needed.
    columns, outputs = c * (d_v + 1), n * d_v if n > c else 0
    if not referenced:
        block_elements = c * (2 * C + c + 4 * d_v + 4) + state if causal else c * max(copies * C, C + d_v + 3)
        key_elements = key_block * (C + d_v + 1) if causal else key_block * copies * C + 2 * state
        peak = max(block_elements + outputs, key_elements) + state
    elif causal:
        temporary = max(c * C + state, c * c + 2 * columns + 2 * state, columns + 3 * state)
        peak = outputs + 2 * c * C + columns + temporary
    else:
        read_elements = max(outputs + state, 3 * state) + c * (2 * C + d_v + 3)
        peak = max(read_elements, 3 * state + key_block * (2 * C + d_v + 1))
    chunk_pairs = n // c * c**2 + (n % c) ** 2 if causal else 0
    return (n + m) * state + chunk_pairs * (C + d_v + 1), peak
