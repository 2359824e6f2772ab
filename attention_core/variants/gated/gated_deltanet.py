"""Gated DeltaNet: the delta rule on a state that fades, so that what is never met again makes room as well."""

from dataclasses import dataclass

from torch import Tensor

from attention_core.algorithms import delta_rule
from attention_core.algorithms.delta_rule import DeltaParams, empty_state, prepared
from attention_core.algorithms.masked import widened
from attention_core.variant import Decoder, Paper, SpecialCase, Variant, param


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNetParams(DeltaParams):
    """Settings of the delta rule with a gate."""

    decay: float = param(
        0.9,
        low=0.1,
        high=1.0,
        step=0.005,
        help="What is left of the whole state at each step, before a token is written; 1 is DeltaNet.",
    )


def weights(q: Tensor, k: Tensor, p: GatedDeltaNetParams, *, causal: bool) -> Tensor:
    """``(Q Kᵀ ⊙ Γ)(I + diag(β) (K Kᵀ ⊙ Γ⁻))⁻¹ diag(β)`` with ``Γ_ij = γ^(i-j)``, ``[..., n, n]``."""
    return delta_rule.matrix(*prepared(q, k, p), decay=p.decay, causal=causal)


def attend(q: Tensor, k: Tensor, v: Tensor, p: GatedDeltaNetParams, *, causal: bool) -> Tensor:
    """The same by chunks of tokens with a state between them: O(n d²) time, O(n d) memory."""
    return delta_rule.attention(*prepared(q, k, p), widened(v), decay=p.decay, causal=causal).to(v.dtype)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: GatedDeltaNetParams, *, causal: bool) -> dict[str, Tensor]:
    """The parts of DeltaNet's anatomy, with ``Γ`` in what is read."""
    return delta_rule.anatomy(*prepared(q, k, p), widened(v), decay=p.decay, causal=causal)


def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor, p: GatedDeltaNetParams) -> tuple[Tensor, Tensor]:
    """One token, ``[..., d]`` and ``[..., d_v]``, to its output and the next state."""
    q, k, beta = prepared(q, k, p)
    out, state = delta_rule.step(state, q, k, beta, widened(v), decay=p.decay)
    return out.to(v.dtype), state


VARIANT = Variant(
    key="gated_deltanet",
    title="Gated DeltaNet",
    family="gated",
    summary="DeltaNet on a state that fades: a key met again is overwritten, and what is never met again makes room.",
    formula=r"A = (Q K^\top \odot \Gamma)\left(I + \operatorname{diag}(\beta)\,(K K^\top \odot \Gamma^-)\right)^{-1}"
    r"\operatorname{diag}(\beta),\quad \Gamma_{ij} = \gamma^{i-j}",
    complexity="n d²",
    params=GatedDeltaNetParams,
    weights=weights,
    attend=attend,
    cost=delta_rule.cost,
    rows_sum_to_one=False,
    signed=True,
    decoder=Decoder(empty_state, step, normalised=False),
    anatomy=anatomy,
    source=Paper("Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024, "https://arxiv.org/abs/2412.06464"),
    note="Models such as Qwen3-Next learn a gate and a strength for each token; here both are constants. Without a "
    "causal mask all is written in order, then each query reads the end's state.",
    special_cases=(SpecialCase("deltanet", {"decay": 1.0}, shared=("keys", "strength")),),
)
