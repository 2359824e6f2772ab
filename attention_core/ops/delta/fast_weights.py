"""Fast weights: a state that each token decays, partly erases and writes to, computed by chunks or as a matrix.

A ``Rule`` returns the gates α, the write strengths β and the erase strengths ε of a variant's tokens. The state is
``S_i = S' + k_i u_iᵀ`` with ``S' = diag(α_i) S_{i-1}``, and the output is ``o_i = S_iᵀ q_i``. Without erasing,
``u_i = β_i v_i``. The delta rule first erases what the key reads: ``u_i = β_i v_i - ε_i S'ᵀ k_i``.

Let ``Γ_ij`` be the product of the gates from j + 1 to i, and ``Γ⁻`` the same below the diagonal. All u of a chunk then
solve one triangular system, ``U = (I + diag(ε) (K Kᵀ ⊙ Γ⁻))⁻¹ diag(β) V``, and the outputs are ``(Q Kᵀ ⊙ Γ) U``. If the
rule erases along directions W other than the keys, ``S_i = S' + k_i β_i v_iᵀ - ε_i w_i w_iᵀ S'``, and the matrix is
``A = (Q Kᵀ ⊙ Γ - (Q Wᵀ ⊙ Γ)(I + diag(ε) (W Wᵀ ⊙ Γ⁻))⁻¹ diag(ε) (W Kᵀ ⊙ Γ⁻)) diag(β)``.

Sources: Yang and others, arXiv 2312.06635 (gates per channel), 2406.06484 (the delta rule by chunks), 2412.06464 (with
a gate), 2505.16381 (other directions); Dao and Gu, 2405.21060; Schlag and others, 2102.11174.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.features import Features, triangle
from attention_core.ops.linear.scans import by_chunks, wants_gradient
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.settings import Params
from attention_core.variant import Cost, Decoder, Variant

CHUNK = 64
"""Tokens per chunk: the products within a chunk then cost about as much as those with the state."""


class Tokens(NamedTuple):
    """The inputs of the recurrence for some tokens.

    Attributes:
        q: queries, ``[..., n, d]``.
        k: keys, ``[..., n, d]``.
        write: β, the strength of writing, ``[..., n, 1]`` or ``[n, 1]``.
        gates: log α, the logarithm of the share of the state kept before each token, ``[..., n, 1]``, ``[n, 1]`` or
            ``[..., n, d]``; None if all of it is kept.
        erase: ε, the strength of erasing, ``[..., n, 1]``; None if nothing is erased.
        along: W, the directions to erase along, ``[..., n, d]``; None if they are the keys.
    """

    q: Tensor
    k: Tensor
    write: Tensor
    gates: Tensor | None = None
    erase: Tensor | None = None
    along: Tensor | None = None


Rule = Callable[[Tensor, Tensor, Any, int], Tokens]
"""``(q, k, p, first) -> Tokens`` for the queries and keys of some tokens that follow ``first`` earlier tokens."""


class Memory(NamedTuple):
    """The state after some tokens.

    Attributes:
        sums: ``S``, ``[..., d, d_v]``.
        taken: the number of tokens so far.
    """

    sums: Tensor
    taken: int = 0


def each_token(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the rows of tensors ``[..., n, *]`` token by token, ``[..., 1, *]`` each, for definitions that loop."""
    yield from zip(*(x.split(1, -2) for x in tensors), strict=True)


def solved(system: Tensor, wanted: Tensor) -> Tensor:
    """Return ``(I + system)⁻¹ wanted``, ``[..., n, *]``, by forward substitution that ignores the diagonal."""
    return torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)


def empty(k: Tensor, v: Tensor) -> Tensor:
    """Return the empty state, ``[..., d, d_v]``, for one token's key ``[..., d]`` and value ``[..., d_v]``."""
    return v.new_zeros(*v.shape[:-1], k.shape[-1], v.shape[-1])


def similar(q: Tensor, k: Tensor, gates: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``Q Kᵀ ⊙ Γ``, ``[..., c, c]``, queries decayed since the chunk's start, and keys decayed to its end.

    The logarithms of the gates are summed from the start of each chunk, because a sum over a long text would be rounded
    too coarsely.
    """
    if gates is None:
        return triangle(Features(q, k))
    fallen = -gates.cumsum(-2)
    return triangle(Features(q, k, fallen), torch.zeros_like(fallen[..., :1, :]))


def alone(tokens: Tokens, v: Tensor) -> Tensor:
    """Return the outputs of the tokens of a short text, ``[..., n, d_v]``, as one chunk that needs no state."""
    q, k, gates, new = tokens.q, tokens.k, tokens.gates, tokens.write * v
    if tokens.erase is None:
        return similar(q, k, gates)[0] @ new
    if tokens.along is None:
        return similar(q, k, gates)[0] @ solved(tokens.erase * similar(k, k, gates)[0], new)
    met = similar(tokens.along, k, gates)[0].tril(-1)
    back = solved(tokens.erase * similar(tokens.along, tokens.along, gates)[0], tokens.erase * (met @ new))
    return similar(q, k, gates)[0] @ new - similar(q, tokens.along, gates)[0] @ back


def take(state: Tensor, tokens: Tokens, v: Tensor, *, read: bool = True) -> tuple[Tensor | None, Tensor]:
    """Update the state by a chunk of tokens.

    Args:
        state: ``S``, ``[..., d, d_v]``.
        tokens: the chunk, ``[..., c, *]``.
        v: values, ``[..., c, d_v]``.
        read: whether to compute outputs.

    Returns:
        The outputs ``[..., c, d_v]``, each read right after its token was written, or None; and the state afterwards.
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
    """Return the outputs ``[..., c, d_v]`` of a chunk of c tokens, None without ``read``, and the state after it."""
    tokens = rule(at_least_float32(q), at_least_float32(k), p, memory.taken)
    out, sums = take(memory.sums, tokens, at_least_float32(v), read=read)
    return None if out is None else out.to(v.dtype), Memory(sums, memory.taken + v.shape[-2])


def attention(rule: Rule, q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return ``matrix(...) @ v``, ``[..., n, d_v]``, computed by chunks: O(n d²) time, O(n d) memory."""
    if causal and v.shape[-2] <= CHUNK and wants_gradient(q, k, v):
        # A single chunk needs no state. Without gradients it reads the empty state anyway, so all chunks cost the same.
        out = alone(rule(at_least_float32(q), at_least_float32(k), p, 0), at_least_float32(v))
    elif causal:
        out, _ = by_chunks(partial(advance, rule=rule, p=p), start(k, v), q, k, v, size=CHUNK)
    else:
        memory = Memory(last_state(rule, k, v, p))
        out, _ = by_chunks(partial(_read_final, rule=rule, p=p), memory, q, size=CHUNK)
    return out.to(v.dtype)


def _read_final(memory: Memory, q: Tensor, *, rule: Rule, p: Params) -> tuple[Tensor, Memory]:
    """Return the outputs of a chunk of queries, read from the final state.

    Only the rule's queries are used. The rule also needs keys, so it is given the queries in their place.
    """
    q = at_least_float32(q)
    return rule(q, q, p, 0).q @ memory.sums, memory


def start(k: Tensor, v: Tensor) -> Memory:
    """Return the state before any token, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    return Memory(empty(k[..., 0, :], at_least_float32(v)[..., 0, :]))


def last_state(rule: Rule, k: Tensor, v: Tensor, p: Params) -> Tensor:
    """Return ``S`` after all tokens, ``[..., d, d_v]``, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    _, memory = by_chunks(partial(advance, rule=rule, p=p, read=False), start(k, v), k, k, v, size=CHUNK)
    return memory.sums


def anatomy(tokens: Tokens, *, causal: bool) -> dict[str, Tensor]:
    """Return the factors of the matrix: ``read @ diag(β)``, or ``read @ inverse @ diag(β)`` if the rule erases.

    Without a causal mask, all tokens are written in the order of the text, and then every query reads the final state.

    Returns:
        ``read`` is ``(Q Kᵀ ⊙ Γ)``, ``[..., n, n]`` like all others. For the delta rule, ``overlaps`` is
        ``diag(ε) (K Kᵀ ⊙ Γ⁻)``, and ``inverse`` is ``(I + overlaps)⁻¹``. With directions W, the overlaps are those of
        W, and the matrix is ``(read - turned @ inverse @ met) @ diag(β)`` with ``turned = (Q Wᵀ ⊙ Γ)`` and
        ``met = diag(ε) (W Kᵀ ⊙ Γ⁻)``.
    """

    def reads(keys: Tensor) -> Tensor:
        if causal:
            return similar(tokens.q, keys, tokens.gates)[0]
        return tokens.q @ similar(keys, keys, tokens.gates)[2].mT

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
    """Return the matrix ``[..., n, n]``, as the product of the factors that ``anatomy`` returns."""
    parts = anatomy(tokens, causal=causal)
    if tokens.along is not None:
        return (parts["read"] - parts["turned"] @ parts["inverse"] @ parts["met"]) * tokens.write.mT
    if tokens.erase is None:
        return parts["read"] * tokens.write.mT
    return parts["read"] @ (parts["inverse"] * tokens.write.mT)


def cost(
    n: int,
    d: int,
    *,
    causal: bool,
    erases: bool,
    gates: int,
    along: bool = False,
    separate: bool = False,
    keys: int | None = None,
) -> Cost:
    """Return the cost: products within chunks, into and out of the state; forward substitution is not counted.

    The peak is reached within a chunk, in addition to the outputs. The count does not hold for gates of channels that
    fall by e⁴⁰ or more within a chunk, because their products need another algorithm.

    Args:
        n: tokens.
        d: size of queries, keys and values.
        causal: whether query i reads before token i + 1 is written.
        erases: whether the rule erases.
        gates: matrices ``[c, c]`` per chunk that the gates need, in addition to the products.
        along: whether the rule erases along directions other than the keys.
        separate: whether each channel has its own gate.
        keys: number of keys; n for None.
    """
    m = keys or n
    c = min(m, CHUNK)
    squares = m // CHUNK * CHUNK**2 + (m % CHUNK) ** 2
    held = min(causal + erases + gates + 1, 3) if erases and not causal else causal + erases + gates
    held = 4 if along else held
    gated = 6 * c * d + d * d if separate else 0  # the keys, their gates and the values of a chunk
    inside = held * c * c + (5 + 4 * erases + 3 * along) * c * d // 2 + d * d if causal or erases else gated
    return Cost(
        multiply_adds=(2 * causal * (1 + along) + erases + 2 * along) * squares * d
        + ((1 + erases + along) * m + n) * d * d,
        peak_elements=max(causal * n * d + inside, n * d + 2 * c * d + d * d),
    )


def variant(
    module: str,
    rule: Rule,
    *,
    erases: bool,
    gates: Callable[[Any], Literal["none", "one", "each"]],
    along: bool = False,
    **declared: Any,  # noqa: ANN401 - any field of Variant
) -> Variant:
    """Return the variant, of the family with gates, that a rule defines.

    Args:
        module: the ``__name__`` of the variant's module.
        rule: returns the inputs of the recurrence.
        erases: whether the rule erases.
        gates: for settings p, whether there is no gate, one gate for all channels, or one gate for each channel.
        along: whether the rule erases along directions other than the keys.
        declared: the other fields of ``Variant``.
    """
    squares = {"none": 0, "each": 1, "one": 1 + erases}

    def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
        # The matrix is computed in float64, because rounding errors accumulate in products of many gates.
        return matrix(rule(q.double(), k.double(), p, 0), causal=causal).to(q.dtype)

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
        return attention(rule, q, k, v, p, causal=causal)

    def init_state(q: Tensor, v: Tensor, p: Params) -> Memory:
        return Memory(empty(q, at_least_float32(v)))

    def step(memory: Memory, q: Tensor, k: Tensor, v: Tensor, p: Params) -> tuple[Tensor, Memory]:
        out, memory = advance(memory, q.unsqueeze(-2), k.unsqueeze(-2), v.unsqueeze(-2), rule=rule, p=p)
        assert out is not None
        return out.squeeze(-2), memory

    def taken(memory: Memory, q: Tensor, k: Tensor, p: Params) -> Tokens:
        return rule(at_least_float32(q).unsqueeze(-2), at_least_float32(k).unsqueeze(-2), p, memory.taken)

    def taken_apart(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
        tokens = rule(at_least_float32(q), at_least_float32(k), p, 0)
        parts = anatomy(tokens, causal=causal)
        named = {"queries": tokens.q, "keys": tokens.k, "strength": tokens.write.expand_as(tokens.k[..., :1])}
        if tokens.along is not None and tokens.erase is not None:
            return {**named, "strength": tokens.erase, "directions": tokens.along, **parts}
        if tokens.erase is not None:
            return {**named, "written": parts["inverse"] @ (tokens.write * at_least_float32(v)), **parts}
        assert tokens.gates is not None
        return {**named, "kept": tokens.gates.exp().expand_as(tokens.k), **parts}

    return Variant(
        module,
        complexity="n d²",
        weights=weights,
        attend=attend,
        cost=lambda n, d, p, *, causal, keys=None: cost(
            n,
            d,
            causal=causal,
            erases=erases,
            gates=squares[gates(p)],
            along=along,
            separate=gates(p) == "each",
            keys=keys,
        ),
        rows_sum_to_one=False,
        signed=True,
        decoder=Decoder(init_state, step, normalised=False, tokens=taken),
        anatomy=taken_apart,
        **declared,
    )
