"""Loops over the tokens: chunk by chunk with a state that is passed on, or as a parallel prefix scan."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from attention_core.settings import param

MAX_STORED_TOKENS = 64
"""Largest single chunk, in tokens, that is stored for the backward pass instead of recomputed there. Recomputing
it would free little memory but repeat the forward pass.
"""
Step = Callable[..., tuple[Any, Any]]
"""``(state, *chunks) -> (result of the chunk, next state)``."""


def scan_chunks(
    step: Step,
    state: Any,  # noqa: ANN401 - each algorithm has its own state
    *tensors: Tensor,
    size: int,
    dim: int = -2,
    reverse: bool = False,
    result: Tensor | None = None,
) -> tuple[Any, Any]:
    """Apply a step to all tokens chunk by chunk; the backward pass recomputes each chunk from the state before it.

    A single chunk of at most ``MAX_STORED_TOKENS`` tokens is not recomputed.

    Args:
        step: takes the state and one chunk of every tensor; the backward pass calls it again, so its closure must
            not change.
        state: the state before the first chunk.
        tensors: ``[..., n, *]`` each, split along the tokens.
        size: tokens per chunk; the last chunk may have fewer.
        dim: the axis of tokens, in the results too.
        reverse: whether to go from the last token to the first. The step then receives each chunk in reverse order,
            and its result is reversed again.
        result: the tensor to write to, if no gradients are needed. It may share memory with one of ``tensors``:
            each chunk is overwritten only after its step.

    Returns:
        The results of all steps in the order of the tokens, or None if steps return None; and the last state.
    """
    if tensors[0].shape[dim] > min(size, MAX_STORED_TOKENS):
        step = with_checkpoint(step, *tensors)
    # With one split instead of a slice per chunk, the backward pass joins the chunks' gradients in a single step.
    chunks = list(enumerate(zip(*(x.split(size, dim) for x in tensors), strict=True)))
    outputs = []
    for i, chunk in reversed(chunks) if reverse else chunks:
        out, state = step(state, *((x.flip(dim) for x in chunk) if reverse else chunk))
        if out is None:
            continue
        out = out.flip(dim) if reverse else out
        if out.requires_grad:
            outputs.append(out)
            continue
        if result is None and len(chunks) == 1:
            return out, state  # without a copy, which takes a noticeable share of the time of short texts
        if result is None:
            shape = list(out.shape)
            shape[dim] = tensors[0].shape[dim]
            result = out.new_empty(shape)
        result.narrow(dim, i * size, out.shape[dim]).copy_(out)
        del out  # to free it before the output of the next chunk is computed
    return torch.cat(outputs[::-1] if reverse else outputs, dim) if outputs else result, state


def token_step(attend_chunk: Step) -> Callable[..., tuple[Tensor, Any]]:
    """Return a decoder's step, which passes one token to ``attend_chunk(state, q, k, v, p)`` as a chunk."""

    def step(state: Any, q: Tensor, k: Tensor, v: Tensor, p: Any) -> tuple[Tensor, Any]:  # noqa: ANN401
        out, state = attend_chunk(state, *(x.unsqueeze(-2) for x in (q, k, v)), p)
        return out.squeeze(-2).to(v.dtype), state

    return step


def mode_setting(*, cumsum: bool = False) -> Any:  # noqa: ANN401 - a dataclass field, like that of param
    """Return the declaration of the setting that selects the causal algorithm.

    ``cumsum`` says whether the algorithm of this name is one of the choices.
    """
    if cumsum:
        return param(
            "chunked",
            choices=("chunked", "recurrent", "cumsum"),
            help='How the result is computed with a causal mask. "chunked" processes a chunk of tokens at a time, and '
            '"recurrent" one token at a time. "cumsum" uses cumulative sums over all tokens. All three give the same '
            "result.",
        )
    return param(
        "chunked",
        choices=("chunked", "recurrent"),
        help='How the result is computed with a causal mask. "chunked" processes a chunk of tokens at a time, and '
        '"recurrent" one token at a time. Both give the same result.',
    )


def map_heads(attend: Callable[..., Tensor], *tensors: Tensor, heads_per_call: int = 1) -> Tensor:
    """Apply ``attend`` to one or a few heads at a time, which limits memory; return all outputs, ``[..., n, *]``.

    Args:
        attend: takes one head of every tensor, ``[n, *]``, because matrix products are faster than batched ones. If
            ``heads_per_call`` is above 1, it takes several heads, ``[heads, n, *]``. The backward pass calls it
            again, so its closure must not change.
        tensors: ``[..., n, *]`` each, with the same leading axes.
        heads_per_call: the number of heads per call.
    """
    lead = tensors[0].shape[:-2]
    if math.prod(lead) <= heads_per_call:
        out = attend(*(x.reshape(x.shape[-2:]) if heads_per_call == 1 else x for x in tensors))
    else:
        heads = (x.reshape(math.prod(lead), *x.shape[-2:]) for x in tensors)
        single = heads_per_call == 1
        step: Step = lambda _, *chunk: (  # noqa: E731
            attend(*(x.squeeze(0) for x in chunk)).unsqueeze(0) if single else attend(*chunk),
            None,
        )
        out, _ = scan_chunks(step, None, *heads, size=heads_per_call, dim=0)
    return out.reshape(*lead, *out.shape[-2:])


def with_checkpoint(step: Callable[..., Any], *tensors: Tensor) -> Callable[..., Any]:
    """Return ``step``, wrapped in a checkpoint if a tensor needs gradients; the backward pass then recomputes it."""
    if not needs_gradient(*tensors):
        return step
    return partial(checkpoint, step, use_reentrant=False, preserve_rng_state=False)


def needs_gradient(*tensors: Tensor) -> bool:
    """Return whether autograd records operations on the tensors."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


Items = tuple[Tensor, ...]


def prefix_scan(combine: Callable[[Items, Items], Items], items: Items) -> Items:
    """Return all running results ``x_0, x_0∘x_1, x_0∘x_1∘x_2, ...`` along the first axis.

    Args:
        combine: an associative operation on tuples of tensors; its left argument holds the earlier positions.
        items: tensors with a common first axis.
    """
    n = items[0].shape[0]
    if n == 1:
        return items
    even, odd = tuple(x[0::2] for x in items), tuple(x[1::2] for x in items)
    at_odd = prefix_scan(combine, combine(tuple(x[: n // 2] for x in even), odd))
    at_even = combine(tuple(x[: (n - 1) // 2] for x in at_odd), tuple(x[1:] for x in even))
    results = []
    for even_first, later, odd_result in zip(even, at_even, at_odd, strict=True):
        result = odd_result.new_empty(n, *odd_result.shape[1:])
        result[0], result[2::2], result[1::2] = even_first[0], later, odd_result
        results.append(result)
    return tuple(results)


def running_max(x: Tensor) -> Tensor:
    """Return ``max_{j <= i} x_j`` for terms ``[..., n, *]``; several times faster than ``torch.cummax`` on a CPU."""
    (result,) = prefix_scan(lambda a, b: (torch.maximum(a[0], b[0]),), (x.movedim(-2, 0),))
    return result.movedim(0, -2)


def running_sum(x: Tensor, reference: Tensor | None = None, dim: int = -2) -> Tensor:
    """Return ``Σ_{j <= i} e^{R_j - R_i} x_j``.

    Args:
        x: the terms.
        reference: ``R``, broadcastable to ``x``, with as many positions along ``dim``. It must not decrease along
            ``dim``, so no exponential exceeds one. None means a plain cumulative sum.
        dim: the axis of positions.
    """
    if reference is None:
        return x.cumsum(dim)

    def combine(earlier: Items, later: Items) -> Items:
        return later[0] + earlier[0] * (earlier[1] - later[1]).exp(), later[1]

    result, _ = prefix_scan(combine, (x.movedim(dim, 0), reference.movedim(dim, 0)))
    return result.movedim(0, dim)
