"""Fast weights: a state that fades, is corrected and is written to, token by token. By chunks, or as a matrix.

Every variant of the family takes tokens as a ``Rule`` says, and all else follows from ``S_i = diag(α_i) S_{i-1} +
k_i u_iᵀ``, ``o_i = S_iᵀ q_i``. Plainly ``u_i = β_i v_i``; by the delta rule what the key reads is taken back first,
``u_i = β_i v_i - ε_i (diag(α_i) S_{i-1})ᵀ k_i``. With ``Γ`` the product of the gates α from j + 1 to i, a number or one
per channel, ``U = (I + diag(ε) (K Kᵀ ⊙ Γ⁻))⁻¹ diag(β) V``, one triangular system, and ``A = (Q Kᵀ ⊙ Γ) U``.
Sources: Yang and others, arXiv 2312.06635 (gates per channel), 2406.06484 (the delta rule by chunks), 2412.06464 (with
a gate); Dao and Gu, 2405.21060; Schlag and others, 2102.11174.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_core.algorithms.features import Features
from attention_core.algorithms.masked import widened
from attention_core.algorithms.scans import by_chunks
from attention_core.algorithms.triangle import triangle
from attention_core.settings import Params
from attention_core.variant import Cost, Decoder, Variant

CHUNK = 64
"""Tokens per chunk: what happens inside one then costs about as much as the state."""


class Tokens(NamedTuple):
    """Tokens as a rule takes them.

    Attributes:
        q: queries, ``[..., n, d]``.
        k: keys, ``[..., n, d]``.
        write: β, how strongly values are written, ``[..., n, 1]`` or ``[n, 1]``.
        gates: log α, what is left of the state before each token, ``[..., n, 1]``, ``[n, 1]`` or ``[..., n, d]``.
        erase: ε, how much is taken back of what a key reads, ``[..., n, 1]``; None where nothing is.
    """

    q: Tensor
    k: Tensor
    write: Tensor
    gates: Tensor
    erase: Tensor | None = None


Rule = Callable[[Tensor, Tensor, Any, int], Tokens]
"""``(q, k, p, first) -> Tokens``: queries and keys of some tokens, ``first`` of which there were before them."""


class Memory(NamedTuple):
    """What is remembered of the past.

    Attributes:
        sums: ``S``, ``[..., d, d_v]``.
        taken: how many tokens it has taken in.
    """

    sums: Tensor
    taken: int = 0


def solved(system: Tensor, wanted: Tensor) -> Tensor:
    """``(I + system)⁻¹ wanted`` by forward substitution, ``[..., n, *]``; the diagonal is not looked at."""
    return torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)


def empty(k: Tensor, v: Tensor) -> Tensor:
    """The state before any token, ``[..., d, d_v]``, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    return v.new_zeros(*v.shape[:-2], k.shape[-1], v.shape[-1])


def take(state: Tensor, v: Tensor, *parts: Tensor, read: bool = True) -> tuple[Tensor | None, Tensor]:
    """Take in a chunk of tokens.

    Args:
        state: ``S``, ``[..., d, d_v]``.
        v: values, ``[..., c, d_v]``.
        parts: what ``Tokens`` is made of.
        read: whether outputs are wanted.

    Returns:
        What each token reads right after it was written, ``[..., c, d_v]``, or None, and the state after them.
    """
    tokens = Tokens(*parts)
    # Counted anew in each chunk: over a long text the sum of logarithms would lose its digits.
    fallen = -tokens.gates.cumsum(-2)
    start, end = torch.zeros_like(fallen[..., :1, :]), fallen[..., -1:, :]
    new = tokens.write * v
    if tokens.erase is None:
        later = tokens.k * (fallen - end).exp()
    else:
        overlaps, early, later = triangle(Features(tokens.k, tokens.k, fallen), start)
        new = solved(tokens.erase * overlaps, new - tokens.erase * (early @ state))
    out = None
    if read:
        inside, early, _ = triangle(Features(tokens.q, tokens.k, fallen), start)
        out = inside @ new + early @ state
    return out, (-end).exp().mT * state + later.mT @ new


def attention(tokens: Tokens, v: Tensor, *, causal: bool) -> Tensor:
    """``matrix(...) @ v`` by chunks with a state, ``[..., n, d_v]``: O(n d²) time, O(n d) memory."""
    if not causal:
        return tokens.q @ last_state(tokens, v)
    outs, _ = by_chunks(take, empty(tokens.k, v), v, *_given(tokens), size=CHUNK)
    return torch.cat(outs, -2)


def last_state(tokens: Tokens, v: Tensor) -> Tensor:
    """``S`` after all tokens, ``[..., d, d_v]``, for values ``[..., n, d_v]``."""
    _, state = by_chunks(partial(take, read=False), empty(tokens.k, v), v, *_given(tokens), size=CHUNK)
    found: Tensor = state
    return found


def _given(tokens: Tokens) -> list[Tensor]:
    return [x for x in tokens if x is not None]


def anatomy(tokens: Tokens, *, causal: bool) -> dict[str, Tensor]:
    """The matrix by its parts: ``read @ diag(β)``, or ``read @ inverse @ diag(β)`` where something is erased.

    Where nothing is causal, all is written in the order of the text, and then every query reads what the end has left.

    Returns:
        ``read``, ``(Q Kᵀ ⊙ Γ)``; by the delta rule ``overlaps``, ``diag(ε) (K Kᵀ ⊙ Γ⁻)``, and ``inverse`` of one plus
        these; ``[..., n, n]`` each.
    """
    fallen = -tokens.gates.cumsum(-2)
    below, _, later = triangle(Features(tokens.q, tokens.k, fallen))
    read = below if causal else tokens.q @ later.mT
    if tokens.erase is None:
        return {"read": read}
    overlaps = tokens.erase * triangle(Features(tokens.k, tokens.k, fallen))[0].tril(-1)
    units = torch.eye(read.shape[-1], dtype=read.dtype, device=read.device)
    return {"read": read, "overlaps": overlaps, "inverse": solved(overlaps, units.expand_as(overlaps))}


def matrix(tokens: Tokens, *, causal: bool) -> Tensor:
    """``(Q Kᵀ ⊙ Γ) diag(β)``, by the delta rule ``(Q Kᵀ ⊙ Γ)(I + diag(ε)(K Kᵀ ⊙ Γ⁻))⁻¹ diag(β)``, ``[..., n, n]``."""
    parts = anatomy(tokens, causal=causal)
    if tokens.erase is None:
        return parts["read"] * tokens.write.mT
    return parts["read"] @ (parts["inverse"] * tokens.write.mT)


def step(state: Tensor, tokens: Tokens, v: Tensor) -> tuple[Tensor, Tensor]:
    """One token, ``[..., 1, *]`` each, to its output ``[..., 1, d_v]`` and the next state."""
    out, state = take(state, v, *_given(tokens))
    assert out is not None
    return out, state


def cost(n: int, d: int, *, causal: bool, erases: bool, channels: bool) -> Cost:
    """All products, in a chunk, into the state and out of it; forward substitution, ``c² d / 2``, is not counted.

    The most numbers stand beside what the rule makes of all tokens: in a chunk, or at the end. Where gates fall by
    e⁴⁰ and more within a chunk, products of channels take another way, which needs less.
    """
    c = min(n, CHUNK)
    squares = n // CHUNK * CHUNK**2 + (n % CHUNK) ** 2
    inside = (3 + erases - channels) * c**2 + (2 * causal + 3 * erases) * c * d + 2 * d * d if causal or erases else 0
    return Cost(
        multiply_adds=(2 * causal + erases) * squares * d + (2 + erases) * n * d * d,
        peak_elements=(1 + erases + channels + causal) * n * d + 2 * n + max(inside, n * d + d * d),
    )


def variant(
    rule: Rule,
    *,
    erases: bool,
    channels: Callable[[Any], bool] = lambda p: False,
    **declared: Any,  # noqa: ANN401 - whatever a Variant is made of
) -> Variant:
    """A variant of the family: all that follows from how it takes tokens.

    Args:
        rule: how it does.
        erases: whether it goes by the delta rule.
        channels: whether, with settings p, each channel has a gate of its own.
        declared: what else its ``Variant`` says.
    """

    def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
        # In float64, where even the last token's gates against the first's are numbers of many digits.
        return matrix(rule(q.double(), k.double(), p, 0), causal=causal).to(q.dtype)

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
        return attention(rule(widened(q), widened(k), p, 0), widened(v), causal=causal).to(v.dtype)

    def init_state(q: Tensor, v: Tensor, p: Params) -> Memory:
        return Memory(empty(q.unsqueeze(-2), widened(v).unsqueeze(-2)))

    def next_state(memory: Memory, q: Tensor, k: Tensor, v: Tensor, p: Params) -> tuple[Tensor, Memory]:
        one, other, value = (widened(x).unsqueeze(-2) for x in (q, k, v))
        out, sums = step(memory.sums, rule(one, other, p, memory.taken), value)
        return out.squeeze(-2).to(v.dtype), Memory(sums, memory.taken + 1)

    def taken_apart(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
        tokens = rule(widened(q), widened(k), p, 0)
        parts = anatomy(tokens, causal=causal)
        written = parts["inverse"] @ (tokens.write * widened(v))
        named = {"queries": tokens.q, "keys": tokens.k, "strength": tokens.write, "written": written}
        return {**named, **parts}

    return Variant(
        family="gated",
        complexity="n d²",
        weights=weights,
        attend=attend,
        cost=lambda n, d, p, *, causal: cost(n, d, causal=causal, erases=erases, channels=channels(p)),
        rows_sum_to_one=False,
        signed=True,
        decoder=Decoder(init_state, next_state, normalised=False),
        anatomy=taken_apart if erases else None,
        **declared,
    )
