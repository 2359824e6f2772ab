"""Fast weights: a state that fades, is corrected and is written to, token by token. By chunks, or as a matrix.

Every variant of the family takes tokens as a ``Rule`` says, and all else follows from ``S_i = diag(α_i) S_{i-1} +
k_i u_iᵀ``, ``o_i = S_iᵀ q_i``. Plainly ``u_i = β_i v_i``; by the delta rule what the key reads is taken back first,
``u_i = β_i v_i - ε_i (diag(α_i) S_{i-1})ᵀ k_i``. With ``Γ`` the product of the gates α from j + 1 to i, a number or one
per channel, ``U = (I + diag(ε) (K Kᵀ ⊙ Γ⁻))⁻¹ diag(β) V``, one triangular system, and ``A = (Q Kᵀ ⊙ Γ) U``. Where
directions W other than the keys are taken back, ``S_i = S' + k_i β_i v_iᵀ - ε_i w_i w_iᵀ S'`` with ``S' = diag(α_i)
S_{i-1}``, and ``A = (Q Kᵀ ⊙ Γ - (Q Wᵀ ⊙ Γ)(I + diag(ε) (W Wᵀ ⊙ Γ⁻))⁻¹ diag(ε) (W Kᵀ ⊙ Γ⁻)) diag(β)``.
Sources: Yang and others, arXiv 2312.06635 (gates per channel), 2406.06484 (the delta rule by chunks), 2412.06464 (with
a gate), 2505.16381 (other directions); Dao and Gu, 2405.21060; Schlag and others, 2102.11174.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.features import Features
from attention_core.ops.linear.scans import by_chunks
from attention_core.ops.linear.triangle import triangle
from attention_core.ops.softmax.masked import widened
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
        gates: log α, what is left of the state before each token, ``[..., n, 1]``, ``[n, 1]`` or ``[..., n, d]``; None
            where all of it is.
        erase: ε, how much is taken back of what a key reads, ``[..., n, 1]``; None where nothing is.
        along: W, the directions of which that much is taken back, ``[..., n, d]``; None where they are the keys.
    """

    q: Tensor
    k: Tensor
    write: Tensor
    gates: Tensor | None = None
    erase: Tensor | None = None
    along: Tensor | None = None


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
    """The state before any token, ``[..., d, d_v]``, for one token's key ``[..., d]`` and value ``[..., d_v]``."""
    return v.new_zeros(*v.shape[:-1], k.shape[-1], v.shape[-1])


def similar(q: Tensor, k: Tensor, gates: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """``Q Kᵀ ⊙ Γ``, ``[..., c, c]``, queries that read from before the first token, keys that are read after the last.

    The gates' logarithms are summed up anew in each chunk: over a long text their sum would lose its digits.
    """
    if gates is None:
        return triangle(Features(q, k))
    fallen = -gates.cumsum(-2)
    return triangle(Features(q, k, fallen), torch.zeros_like(fallen[..., :1, :]))


def take(state: Tensor, tokens: Tokens, v: Tensor, *, read: bool = True) -> tuple[Tensor | None, Tensor]:
    """Take in a chunk of tokens.

    Args:
        state: ``S``, ``[..., d, d_v]``.
        tokens: the chunk, ``[..., c, *]``.
        v: values, ``[..., c, d_v]``.
        read: whether outputs are wanted.

    Returns:
        What each token reads right after it was written, ``[..., c, d_v]``, or None, and the state after them.
    """
    q, k, gates, along = tokens.q, tokens.k, tokens.gates, tokens.along
    new, later, out, back = tokens.write * v, k, None, None
    if tokens.erase is not None and along is None:
        overlaps, early, later = similar(k, k, gates)
        new = solved(tokens.erase * overlaps, new - tokens.erase * (early @ state))
    elif tokens.erase is not None and along is not None:
        met, _, later = similar(along, k, gates)
        overlaps, early, kept = similar(along, along, gates)
        back = solved(tokens.erase * overlaps, tokens.erase * (early @ state + met.tril(-1) @ new))
    if read:
        inside, early, later = similar(q, k, gates)
        out = inside @ new + early @ state
        if back is not None and along is not None:
            out = out - similar(q, along, gates)[0] @ back
    elif tokens.erase is None and gates is not None:
        fallen = gates.cumsum(-2)
        later = k * (fallen[..., -1:, :] - fallen).exp()
    if gates is not None:
        state = gates.sum(-2, keepdim=True).exp().mT * state
    state = state + later.mT @ new
    return out, state if back is None else state - kept.mT @ back


def advance(
    memory: Memory, q: Tensor, k: Tensor, v: Tensor, *, rule: Rule, p: Params, read: bool = True
) -> tuple[Tensor | None, Memory]:
    """Take in tokens as a rule does, ``[..., c, d]`` and ``[..., c, d_v]``: their outputs, and what is remembered."""
    tokens = rule(widened(q), widened(k), p, memory.taken)
    out, sums = take(memory.sums, tokens, widened(v), read=read)
    return None if out is None else out.to(v.dtype), Memory(sums, memory.taken + v.shape[-2])


def attention(rule: Rule, q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """``matrix(...) @ v`` by chunks with a state, ``[..., n, d_v]``: O(n d²) time, O(n d) memory."""
    if causal:
        out, _ = by_chunks(partial(advance, rule=rule, p=p), start(k, v), q, k, v, size=CHUNK)
    else:
        memory = Memory(last_state(rule, k, v, p))
        out, _ = by_chunks(partial(_look_back, rule=rule, p=p), memory, q, k, size=CHUNK)
    return out.to(v.dtype)


def _look_back(memory: Memory, q: Tensor, k: Tensor, *, rule: Rule, p: Params) -> tuple[Tensor, Memory]:
    """What a chunk of queries reads of a state that nothing is written to any more."""
    query = rule(widened(q), widened(k), p, memory.taken).q
    return query @ memory.sums, Memory(memory.sums, memory.taken + q.shape[-2])


def start(k: Tensor, v: Tensor) -> Memory:
    """Nothing remembered, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    return Memory(empty(k[..., 0, :], widened(v)[..., 0, :]))


def last_state(rule: Rule, k: Tensor, v: Tensor, p: Params) -> Tensor:
    """``S`` after all tokens, ``[..., d, d_v]``, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    _, memory = by_chunks(partial(advance, rule=rule, p=p, read=False), start(k, v), k, k, v, size=CHUNK)
    found: Tensor = memory.sums
    return found


def anatomy(tokens: Tokens, *, causal: bool) -> dict[str, Tensor]:
    """The matrix by its parts: ``read @ diag(β)``, or ``read @ inverse @ diag(β)`` where something is erased.

    Where nothing is causal, all is written in the order of the text, and then every query reads what the end has left.

    Returns:
        ``read``, ``(Q Kᵀ ⊙ Γ)``; by the delta rule ``overlaps``, ``diag(ε) (K Kᵀ ⊙ Γ⁻)``, and ``inverse`` of one plus
        these; ``[..., n, n]`` each. Along W the overlaps are its own, and the matrix is ``(read - turned @ inverse @
        met) @ diag(β)`` with ``turned``, ``(Q Wᵀ ⊙ Γ)``, and ``met``, ``diag(ε) (W Kᵀ ⊙ Γ⁻)``.
    """

    def reads(keys: Tensor) -> Tensor:
        below, _, later = similar(tokens.q, keys, tokens.gates)
        return below if causal else tokens.q @ later.mT

    read = reads(tokens.k)
    if tokens.erase is None:
        return {"read": read}
    along = tokens.k if tokens.along is None else tokens.along
    overlaps = tokens.erase * similar(along, along, tokens.gates)[0].tril(-1)
    units = torch.eye(read.shape[-1], dtype=read.dtype, device=read.device)
    parts = {"read": read, "overlaps": overlaps, "inverse": solved(overlaps, units.expand_as(overlaps))}
    if tokens.along is None:
        return parts
    met = tokens.erase * similar(along, tokens.k, tokens.gates)[0].tril(-1)
    return {**parts, "turned": reads(along), "met": met}


def matrix(tokens: Tokens, *, causal: bool) -> Tensor:
    """``(Q Kᵀ ⊙ Γ) diag(β)``, or by the delta rule as above, ``[..., n, n]``."""
    parts = anatomy(tokens, causal=causal)
    if tokens.along is not None:
        return (parts["read"] - parts["turned"] @ parts["inverse"] @ parts["met"]) * tokens.write.mT
    if tokens.erase is None:
        return parts["read"] * tokens.write.mT
    return parts["read"] @ (parts["inverse"] * tokens.write.mT)


def cost(n: int, d: int, *, causal: bool, erases: bool, gates: int, along: bool = False) -> Cost:
    """All products, in a chunk, into the state and out of it; forward substitution, ``c² d / 2``, is not counted.

    The most numbers stand in a chunk beside the outputs. Where gates of channels fall by e⁴⁰ and more within a chunk,
    their products take another way.

    Args:
        n: tokens.
        d: size of queries, keys and values.
        causal: whether query i reads before token i + 1 is written.
        erases: whether it goes by the delta rule.
        gates: squares of a chunk that gates take, beside the products.
        along: whether what it takes back lies along directions of its own.
    """
    c = min(n, CHUNK)
    squares = n // CHUNK * CHUNK**2 + (n % CHUNK) ** 2
    held = min(causal + erases + gates + 1, 3) if erases and not causal else causal + erases + gates
    held = 4 if along else held
    inside = held * c * c + (5 + 4 * erases + 3 * along) * c * d // 2 + d * d if causal or erases else 0
    return Cost(
        multiply_adds=(2 * causal * (1 + along) + erases + 2 * along) * squares * d + (2 + erases + along) * n * d * d,
        peak_elements=max(causal * n * d + inside, n * d + 2 * c * d + d * d),
    )


def variant(
    rule: Rule,
    *,
    erases: bool,
    gates: Callable[[Any], Literal["none", "one", "each"]],
    along: bool = False,
    **declared: Any,  # noqa: ANN401 - whatever a Variant is made of
) -> Variant:
    """A variant of the family: all that follows from how it takes tokens.

    Args:
        rule: how it does.
        erases: whether it goes by the delta rule.
        gates: with settings p, no gate, one for all channels, or one for each.
        along: whether what it takes back lies along directions of its own.
        declared: what else its ``Variant`` says.
    """
    squares = {"none": 0, "each": 1, "one": 1 + erases}

    def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
        # In float64, where even the last token's gates against the first's are numbers of many digits.
        return matrix(rule(q.double(), k.double(), p, 0), causal=causal).to(q.dtype)

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
        return attention(rule, q, k, v, p, causal=causal)

    def init_state(q: Tensor, v: Tensor, p: Params) -> Memory:
        return Memory(empty(q, widened(v)))

    def step(memory: Memory, q: Tensor, k: Tensor, v: Tensor, p: Params) -> tuple[Tensor, Memory]:
        out, memory = advance(memory, q.unsqueeze(-2), k.unsqueeze(-2), v.unsqueeze(-2), rule=rule, p=p)
        assert out is not None
        return out.squeeze(-2), memory

    def taken(memory: Memory, q: Tensor, k: Tensor, p: Params) -> Tokens:
        return rule(widened(q).unsqueeze(-2), widened(k).unsqueeze(-2), p, memory.taken)

    def taken_apart(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
        tokens = rule(widened(q), widened(k), p, 0)
        parts = anatomy(tokens, causal=causal)
        named = {"queries": tokens.q, "keys": tokens.k, "strength": tokens.write.expand_as(tokens.k[..., :1])}
        if tokens.along is not None and tokens.erase is not None:
            return {**named, "strength": tokens.erase, "directions": tokens.along, **parts}
        if tokens.erase is not None:
            return {**named, "written": parts["inverse"] @ (tokens.write * widened(v)), **parts}
        assert tokens.gates is not None
        return {**named, "kept": tokens.gates.exp().expand_as(tokens.k), **parts}

    return Variant(
        family="gated",
        complexity="n d²",
        weights=weights,
        attend=attend,
        cost=lambda n, d, p, *, causal: cost(n, d, causal=causal, erases=erases, gates=squares[gates(p)], along=along),
        rows_sum_to_one=False,
        signed=True,
        decoder=Decoder(init_state, step, normalised=False, tokens=taken),
        anatomy=taken_apart,
        **declared,
    )
