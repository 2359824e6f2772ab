"""The delta rule: before a value is written, what its key reads now is erased. By chunks, or as an explicit matrix.

With ``Γ_ij = γ^(i-j)``, write strengths ``β`` and ``⁻`` for what lies strictly below the diagonal, the state
``S_i = γ S_{i-1} + k_i u_iᵀ`` takes in ``u_i = β_i (v_i - γ S_{i-1}ᵀ k_i)``, so that
``U = (I + diag(β) (K Kᵀ ⊙ Γ⁻))⁻¹ diag(β) V``: one triangular system, solved by forward substitution.
Sources: Yang and others, arXiv 2406.06484 (the chunks) and 2412.06464 (with decay); Schlag and others, 2102.11174.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from attention_core.algorithms.masked import distances, nonzero, widened
from attention_core.algorithms.scans import by_chunks
from attention_core.settings import Params, param
from attention_core.variant import Cost

CHUNK = 64
"""Tokens per chunk: the triangular system inside one then costs about as much as the state."""


@dataclass(frozen=True, kw_only=True)
class DeltaParams(Params):
    """Settings of the delta rule."""

    keys: str = param(
        "unit",
        choices=("unit", "exact"),
        help="Queries and keys of length one, or as they are with the exact step of the differential equation, which "
        "no key makes unstable.",
    )
    strength: float = param(
        1.0,
        low=0.05,
        high=2.0,
        step=0.05,
        help="How much is replaced of what a key reads: at 1 and unit keys all of it, at 2 it is turned over.",
    )


def prepared(q: Tensor, k: Tensor, p: DeltaParams) -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys as the rule takes them, ``[..., n, d]``, and the write strengths, ``[..., n, 1]``."""
    q, k = (as_taken(widened(x), p) for x in (q, k))
    return q, k, write_strength(k, p.keys, p.strength)


def as_taken(x: Tensor, p: DeltaParams) -> Tensor:
    """Queries or keys as the rule takes them: of length one, or so that their product is the scaled logit."""
    if p.keys == "unit":
        return x / nonzero(torch.linalg.vector_norm(x, dim=-1, keepdim=True))
    return x * x.shape[-1] ** -0.25


def write_strength(k: Tensor, keys: str, strength: float) -> Tensor:
    """β of every key as it is taken, ``[..., n, 1]``: the constant, or ``(1 - e^{-η ‖k‖²}) / ‖k‖²``."""
    square = k.square().sum(-1, keepdim=True)
    if keys == "unit":
        return torch.full_like(square, strength)
    return torch.where(square == 0, strength, -torch.expm1(-strength * square) / nonzero(square))


def fading(n: int, decay: float, like: Tensor) -> Tensor:
    """``Γ``: ``γ^(i-j)`` for ``j <= i``, zero above, ``[n, n]``."""
    distance = distances(n, like.device)
    return torch.where(distance >= 0, decay ** distance.clamp_min(0).to(like), 0.0)


def overlaps(k: Tensor, beta: Tensor, fade: Tensor) -> Tensor:
    """``diag(β) (K Kᵀ ⊙ Γ⁻)``, what each key reads of those written before, ``[..., n, n]``."""
    return beta * (k @ k.mT * fade).tril(-1)


def solved(system: Tensor, wanted: Tensor) -> Tensor:
    """``(I + system)⁻¹ wanted`` by forward substitution, ``[..., n, *]``; the diagonal is not looked at."""
    return torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)


def anatomy(q: Tensor, k: Tensor, beta: Tensor, v: Tensor, decay: float, *, causal: bool) -> dict[str, Tensor]:
    """The matrix by its parts: ``matrix = read @ inverse @ diag(β)``; arguments as of ``matrix``."""
    n = k.shape[-2]
    fade = fading(n, decay, k)
    system = overlaps(k, beta, fade)
    inverse = solved(system, torch.eye(n, dtype=k.dtype, device=k.device).expand_as(system))
    return {
        "queries": q,
        "keys": k,
        "strength": beta,
        "overlaps": system,
        "inverse": inverse,
        "written": inverse @ (beta * v),
        "read": q @ k.mT * (fade if causal else fade[-1:]),
    }


def matrix(q: Tensor, k: Tensor, beta: Tensor, decay: float, *, causal: bool) -> Tensor:
    """``(Q Kᵀ ⊙ Γ)(I + diag(β)(K Kᵀ ⊙ Γ⁻))⁻¹ diag(β)``, ``[..., n, n]``.

    Where nothing is causal, all is written in the order of the text, and then every query reads what the end has left:
    ``γ^(n-1-j)`` stands in ``Γ``'s place before it.

    Args:
        q: queries, ``[..., n, d]``.
        k: keys, ``[..., n, d]``.
        beta: write strengths, ``[..., n, 1]``.
        decay: γ.
        causal: whether query i reads before token i + 1 is written.
    """
    parts = anatomy(q, k, beta, k[..., :0], decay, causal=causal)
    return parts["read"] @ (parts["inverse"] * beta.mT)


def take(state: Tensor, k: Tensor, beta: Tensor, v: Tensor, decay: float) -> tuple[Tensor, Tensor, Tensor]:
    """Take in a chunk of tokens.

    Args:
        state: ``S``, ``[..., d, d_v]``.
        k: keys, ``[..., c, d]``.
        beta: write strengths, ``[..., c, 1]``.
        v: values, ``[..., c, d_v]``.
        decay: γ.

    Returns:
        What the tokens write, ``[..., c, d_v]``, what is left of the state at each of them, ``[c, 1]``, and the state
        after them.
    """
    fade = fading(k.shape[-2], decay, k)
    left = decay * fade[:, :1]  # γ^(i+1)
    new = solved(overlaps(k, beta, fade), beta * (v - left * (k @ state)))
    return new, left, left[-1:] * state + (k * fade[-1:].mT).mT @ new


def attention(q: Tensor, k: Tensor, beta: Tensor, v: Tensor, decay: float, *, causal: bool) -> Tensor:
    """``matrix(...) @ v`` by chunks with a state, ``[..., n, d_v]``; arguments as of ``matrix`` and ``take``."""
    state = empty(k, v)
    if causal:
        outs, _ = by_chunks(partial(_read, decay=decay), state, q, k, beta, v, size=CHUNK)
        return torch.cat(outs, -2)
    _, state = by_chunks(partial(_keep, decay=decay), state, k, beta, v, size=CHUNK)
    return q @ state


def empty_state(q: Tensor, v: Tensor, p: DeltaParams) -> Tensor:
    """The state before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    return empty(q.unsqueeze(-2), widened(v).unsqueeze(-2))


def empty(k: Tensor, v: Tensor) -> Tensor:
    """The state before any token, ``[..., d, d_v]``, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    return v.new_zeros(*v.shape[:-2], k.shape[-1], v.shape[-1])


def _read(state: Tensor, q: Tensor, k: Tensor, beta: Tensor, v: Tensor, decay: float) -> tuple[Tensor, Tensor]:
    """The outputs of a chunk, ``[..., c, d_v]``, each token's read right after it was written, and the next state."""
    new, left, after = take(state, k, beta, v, decay)
    return left * (q @ state) + (q @ k.mT * fading(k.shape[-2], decay, k)) @ new, after


def _keep(state: Tensor, k: Tensor, beta: Tensor, v: Tensor, decay: float) -> tuple[None, Tensor]:
    """Nothing is read of a chunk but the next state."""
    return None, take(state, k, beta, v, decay)[-1]


def step(state: Tensor, q: Tensor, k: Tensor, beta: Tensor, v: Tensor, decay: float) -> tuple[Tensor, Tensor]:
    """One token, ``[..., d]``, ``[..., d]``, ``[..., 1]`` and ``[..., d_v]``, to its output and the next state."""
    state = decay * state
    new = beta * (v - (k.unsqueeze(-2) @ state).squeeze(-2))
    state = state + k.unsqueeze(-1) * new.unsqueeze(-2)
    return (q.unsqueeze(-2) @ state).squeeze(-2), state


def cost(n: int, d: int, p: DeltaParams, *, causal: bool) -> Cost:
    """All products, in a chunk, into the state and out of it; forward substitution, ``c² d / 2``, is not counted.

    The most numbers stand beside queries, keys and strengths as they are taken: in a chunk, or at the end.
    """
    chunk = min(n, CHUNK)
    squares = n // CHUNK * CHUNK**2 + (n % CHUNK) ** 2
    inside = 4 * chunk**2 + chunk * (5 if causal else 3) * d + 2 * d * d
    most = max((n * d if causal else 0) + inside, (2 if causal else 1) * n * d + d * d)
    return Cost(multiply_adds=(3 if causal else 1) * squares * d + 3 * n * d * d, peak_elements=2 * n * d + n + most)
