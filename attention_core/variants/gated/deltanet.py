"""DeltaNet: linear attention that erases what a key stands for before it writes anew.

Plain linear attention adds up; a key met again then stands for the sum of all its values. The delta rule writes the
difference between the value and what the key reads so far, so that the last value counts. A state's step is
``I - β k kᵀ``, whose one eigenvalue other than 1 is ``1 - β ‖k‖²``: it neither grows nor turns over while that lies in
[0, 1], which unit keys and the exact step hold.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.algorithms import delta_rule
from attention_core.algorithms.masked import nonzero, widened
from attention_core.variant import Cost, Decoder, Paper, Params, Variant, param


@dataclass(frozen=True, kw_only=True)
class DeltaNetParams(Params):
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


def prepared(q: Tensor, k: Tensor, p: DeltaNetParams) -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys as the rule takes them, ``[..., n, d]``, and the write strengths, ``[..., n, 1]``."""
    q, k = (as_taken(widened(x), p) for x in (q, k))
    return q, k, write_strength(k, p.keys, p.strength)


def as_taken(x: Tensor, p: DeltaNetParams) -> Tensor:
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


def weights(q: Tensor, k: Tensor, p: DeltaNetParams, *, causal: bool) -> Tensor:
    """``(Q Kᵀ ⊙ M)(I + diag(β) (K Kᵀ ⊙ M⁻))⁻¹ diag(β)``, ``[..., n, n]``; without ``M`` where nothing is causal."""
    return delta_rule.matrix(*prepared(q, k, p), decay=1.0, causal=causal)


def attend(q: Tensor, k: Tensor, v: Tensor, p: DeltaNetParams, *, causal: bool) -> Tensor:
    """The same by chunks of tokens with a state between them: O(n d²) time, O(n d) memory."""
    return delta_rule.attention(*prepared(q, k, p), widened(v), decay=1.0, causal=causal).to(v.dtype)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: DeltaNetParams, *, causal: bool) -> dict[str, Tensor]:
    """What is written in each value's place, and how it is read: ``weights = read @ inverse @ diag(strength)``.

    ``queries`` and ``keys`` as they are taken, ``[..., n, d]``; ``strength`` β, ``[..., n, 1]``; ``overlaps``, β times
    what each key reads of those before, ``inverse`` of one plus these, and ``read``, ``[..., n, n]``; ``written``,
    ``[..., n, d_v]``.
    """
    return delta_rule.anatomy(*prepared(q, k, p), widened(v), decay=1.0, causal=causal)


def cost(n: int, d: int, p: DeltaNetParams, *, causal: bool) -> Cost:
    """What happens inside a chunk, into the state and out of it; queries, keys and strengths as they are prepared."""
    return Cost(
        multiply_adds=delta_rule.adds(n, d, causal=causal),
        peak_elements=2 * n * d + n + delta_rule.elements(n, d, causal=causal),
    )


def init_state(q: Tensor, v: Tensor, p: DeltaNetParams) -> Tensor:
    """The state before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    return delta_rule.empty(q.unsqueeze(-2), widened(v).unsqueeze(-2))


def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor, p: DeltaNetParams) -> tuple[Tensor, Tensor]:
    """One token, ``[..., d]`` and ``[..., d_v]``, to its output and the next state."""
    q, k, beta = prepared(q, k, p)
    out, state = delta_rule.step(state, q, k, beta, widened(v), decay=1.0)
    return out.to(v.dtype), state


VARIANT = Variant(
    key="deltanet",
    title="DeltaNet",
    family="gated",
    summary="Linear attention that corrects itself: a token writes only what its key does not read already.",
    formula=r"A = (Q K^\top \odot M)\left(I + \operatorname{diag}(\beta)\,(K K^\top \odot M^-)\right)^{-1}"
    r"\operatorname{diag}(\beta)",
    complexity="n d²",
    params=DeltaNetParams,
    weights=weights,
    attend=attend,
    cost=cost,
    rows_sum_to_one=False,
    signed=True,
    decoder=Decoder(init_state, step, normalised=False),
    anatomy=anatomy,
    source=Paper(
        "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
        2024,
        "https://arxiv.org/abs/2406.06484",
    ),
    further=(
        Paper("Linear Transformers Are Secretly Fast Weight Programmers", 2021, "https://arxiv.org/abs/2102.11174"),
    ),
    note="Models learn how strongly each token writes, and convolve queries and keys with their neighbours first; here "
    "the strength is a constant. Without a causal mask all is written in order, then each query reads the end's state.",
)
