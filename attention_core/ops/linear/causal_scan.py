"""Causal kernel attention without an n x n matrix, by one of three algorithms.

The algorithms read the text by chunks or token by token, or store the states of all tokens. Every algorithm computes
the state ``S_i = Σ_{j <= i} k_j v_jᵀ``. The term of key j for query i may also have the factor ``e^(R_j - R_i)``,
which lets the state decay or prevents overflow; ``Features`` explains R. For the normaliser, a column of ones is
appended to the values, so it needs no separate state.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.linear.features import Features, causal_similarities
from attention_core.ops.linear.scans import running_sum, scan_chunks
from attention_core.ops.once_differentiable import once_differentiable
from attention_core.ops.softmax.masked import safe_divisor

CHUNK = 64
"""Tokens per chunk: the c x c product within a chunk then costs about as much as the C x d_v product of the state."""


def chunk_size(keys: Tensor) -> int:
    """Return the tokens per chunk for the features of all keys, ``[..., n, C]``: ``CHUNK`` on a CPU, more on a GPU."""
    heads = math.prod(keys.shape[:-2])
    return step_size(CHUNK, keys.device, numbers=heads * keys.shape[-1], per_pair=heads)


class State(NamedTuple):
    """The state of causal kernel attention after some tokens.

    Attributes:
        sums: ``Σ e^{R_j - R} k_j v_jᵀ`` over all tokens j so far, ``[..., C, d_v]``, or ``[..., C, d_v + 1]`` with
            the normaliser.
        reference: R, the reference (see ``Features``) of the last token, ``[..., 1, C]`` or ``[..., 1, 1]``; None
            without references.
    """

    sums: Tensor
    reference: Tensor | None


def empty_state(features: int, v: Tensor, *, normalise: bool, references: int) -> State:
    """Return the state before any token.

    Args:
        features: C, the number of features of a token.
        v: the value of one token, ``[..., d_v]``, which gives the leading axes, type and device.
        normalise: whether the state has a column for the normaliser.
        references: the number of a token's references (see ``Features``): C, 1, or 0 for features without references.
    """
    *lead, d_v = v.shape
    # The reference (see ``Features``), a logarithm that never decreases, starts at the lowest finite number. With -inf,
    # the difference of two references would be NaN.
    reference = v.new_full((*lead, 1, references), torch.finfo(v.dtype).min) if references else None
    return State(v.new_zeros(*lead, features, d_v + normalise), reference)


def scan_step(state: State, f: Features, v: Tensor) -> tuple[Tensor, State]:
    """Return ``Σ_{j <= i} (q_i · k_j) v_j`` for the next one or more tokens, ``[..., c, d_v]``, and the new state."""
    products, q, k = causal_similarities(f, state.reference)
    out = products @ v + q @ state.sums
    if f.reference is None or state.reference is None:
        return out, State(state.sums + k.mT @ v, None)
    last = f.reference[..., -1:, :]
    return out, State(state.sums * (state.reference - last).exp().mT + k.mT @ v, last)


def with_ones(v: Tensor) -> Tensor:
    """Return values with a last column of ones, whose weighted sum is the normaliser."""
    return F.pad(v, (0, 1), value=1.0)


def apply_normaliser(out: Tensor) -> Tensor:
    """Return weighted sums divided by their last column, the normaliser; a row whose normaliser is zero stays zero."""
    return out[..., :-1] / safe_divisor(out[..., -1:])


def run_decoder(step: Callable[..., tuple[Tensor, Any]], state: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # noqa: ANN401 - each decoder has its own state
    """Run a decoder's step ``(state, q_i, k_i, v_i) -> (out_i, state)`` over all tokens, ``[..., n, d_v]``."""
    outs = []
    for token in zip(q.unbind(-2), k.unbind(-2), v.unbind(-2), strict=True):
        out, state = step(state, *token)
        outs.append(out)
    return torch.stack(outs, -2)


def causal_attention(f: Features, v: Tensor, *, mode: str, normalise: bool) -> Tensor:
    """Return ``Σ_{j <= i} (Σ_f q_if e^{R_jf - R_if} k_jf) v_j``, ``[..., n, d_v]``, normalised if requested.

    The references R are explained in ``Features``.

    Args:
        f: features of the queries and keys.
        v: ``[..., n, d_v]``.
        mode: ``"chunked"``: one state, O(n (c + C) d_v) time for chunks of c tokens and C features. ``"cumsum"``: all
            states in memory, O(n C d_v) time.
        normalise: whether each row's weights are divided by their sum.
    """
    if mode == "cumsum":
        values = with_ones(v) if normalise else v
        reference = None if f.reference is None else f.reference.unsqueeze(-1)
        states = running_sum(f.k.unsqueeze(-1) * values.unsqueeze(-2), reference, dim=-3)
        out = (f.q.unsqueeze(-2) @ states).squeeze(-2)
        return apply_normaliser(out) if normalise else out
    if f.reference is None and normalise:
        return _ChunkedAttention.apply(f.q, f.k, v)
    return _scan_features(f, v, normalise=normalise)


def _scan_features(f: Features, v: Tensor, *, normalise: bool) -> Tensor:
    """Compute the outputs chunk by chunk; the backward pass recomputes each chunk from the state before it."""

    def attend_chunk(state: State, v: Tensor, *features: Tensor) -> tuple[Tensor, State]:
        out, state = scan_step(state, Features(*features), with_ones(v) if normalise else v)
        return apply_normaliser(out) if normalise else out, state

    references = 0 if f.reference is None else f.k.shape[-1]
    state = empty_state(f.k.shape[-1], v[..., 0, :], normalise=normalise, references=references)
    size = chunk_size(f.k)
    out, _ = scan_chunks(attend_chunk, state, v, *(x for x in f if x is not None), size=size)
    return out


def _running_products(chunks: Iterable[tuple[Tensor, Tensor, Tensor]], *, reverse: bool = False) -> Iterator[Tensor]:
    """Yield ``Σ_{j <= i} (a_i · b_j) c_j`` for each chunk of (a, b, c).

    With ``reverse``, the chunks come last first, and the sums are over ``j >= i``.
    """
    state: Tensor | None = None
    previous: tuple[Tensor, Tensor] | None = None
    for a, b, c in chunks:
        # Each chunk is added to the state when the next one begins: the state after the last chunk is not needed.
        if previous is not None:
            update = previous[0].mT @ previous[1]
            state = update if state is None else state + update
        previous = b, c
        products = a @ b.mT
        out = (products.triu_() if reverse else products.tril_()) @ c
        yield out if state is None else out + a @ state


class _ChunkedAttention(torch.autograd.Function):
    """Normalised chunked attention without references, whose backward pass holds one state instead of all states.

    Let ``G`` be the gradient at the numerator, with the gradient at the normaliser as its last column. Each gradient is
    a running product again, so the same function computes it chunk by chunk:
    ``∇q_i = Σ_{j<=i} (G_i·v_j) k_j``, ``∇k_j = Σ_{i>=j} (v_j·G_i) q_i``, ``∇v_j = Σ_{i>=j} (k_j·q_i) G_i``.
    Source: Katharopoulos et al. 2020, arXiv 2006.16236, section 3.3.1.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # noqa: ANN401 - torch's context object
        out, normaliser = torch.empty_like(v), v.new_empty(*v.shape[:-1], 1)
        size = chunk_size(k)
        triples = ((q, k, with_ones(v)) for q, k, v in _chunks(q, k, v, size=size))
        for sums, (o, z) in zip(_running_products(triples), _chunks(out, normaliser, size=size), strict=True):
            z.copy_(safe_divisor(sums[..., -1:]))
            torch.div(sums[..., :-1], z, out=o)
        ctx.save_for_backward(q, k, v, out, normaliser)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:  # noqa: ANN401
        q, k, v, out, normaliser = ctx.saved_tensors
        size = chunk_size(k)
        chunks = _chunks(q, k, v, grad, out, normaliser, size=size)

        def with_gradients(chunks: list[tuple[Tensor, ...]]) -> Iterator[tuple[Tensor, ...]]:
            for q, k, v, g, out, z in chunks:
                yield q, k, with_ones(v), torch.cat([g, -(g * out).sum(-1, keepdim=True)], -1) / z

        grads = tuple(torch.empty_like(x) for x in (q, k, v))
        q_grads, k_grads, v_grads = (x.split(size, -2) for x in grads)
        last_first = chunks[::-1]
        _copy_all(q_grads, _running_products((g, v, k) for q, k, v, g in with_gradients(chunks)))
        to_k = ((v, g, q) for q, k, v, g in with_gradients(last_first))
        _copy_all(k_grads[::-1], _running_products(to_k, reverse=True))
        to_v = ((k, q, g[..., :-1]) for q, k, v, g in with_gradients(last_first))
        _copy_all(v_grads[::-1], _running_products(to_v, reverse=True))
        return grads


def _chunks(*tensors: Tensor, size: int) -> list[tuple[Tensor, ...]]:
    return list(zip(*(x.split(size, -2) for x in tensors), strict=True))


def _copy_all(targets: Iterable[Tensor], sources: Iterable[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def causal_multiply_adds(n: int, features: int, d_v: int, *, mode: str, normalise: bool, referenced: bool) -> int:
    """Return an upper bound on one head's multiply-adds of ``causal_attention``.

    For the mode ``"recurrent"``, return those of ``run_decoder``. ``features`` is C, and ``referenced`` is whether the
    features have references.
    """
    state = features * (d_v + normalise)
    if mode == "cumsum":
        return n * state
    chunk = 1 if mode == "recurrent" else CHUNK
    sizes = [chunk] * (n // chunk) + [n % chunk] * (n % chunk > 0)
    within_chunks = sum(c * c * (features + d_v + normalise) for c in sizes)
    # Without references (see ``Features``), the chunked form does not read the state in its first chunk, because the
    # state is still empty.
    reads = n - sizes[0] if mode == "chunked" and normalise and not referenced else n
    return within_chunks + (reads + n) * state
