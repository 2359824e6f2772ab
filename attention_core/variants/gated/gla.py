"""Gated linear attention: every channel of the state fades by a gate of its own."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.fast_weights import Tokens
from attention_core.ops.linear.gates import GateParams, each, gate, log_gates
from attention_core.variant import Paper, SpecialCase


@dataclass(frozen=True, kw_only=True)
class GlaParams(GateParams):
    """Settings of gated linear attention."""

    gate: str = gate("keys")


def tokens(q: Tensor, k: Tensor, p: GlaParams, first: int) -> Tokens:
    """Queries over √d; a gate for each channel, all alike unless keys make it."""
    gates = log_gates(k, p, first=first, channels=True)
    return Tokens(q * q.shape[-1] ** -0.5, k, torch.ones_like(gates[..., :1]), gates)


VARIANT = fast_weights.variant(
    tokens,
    erases=False,
    gates=each,
    key="gla",
    title="Gated linear",
    summary="Linear attention whose state forgets channel by channel: what a token's key is low in fades faster.",
    formula=r"A_{ij} = \frac{1}{\sqrt{d}} \sum_c q_{ic}\, k_{jc} \prod_{l=j+1}^{i} \alpha_{lc}",
    params=GlaParams,
    source=Paper(
        "Gated Linear Attention Transformers with Hardware-Efficient Training", 2023, "https://arxiv.org/abs/2312.06635"
    ),
    note="GLA learns a projection that makes a gate of each token; here its key takes that place, α = σ(k)^(1/root), "
    "untrained. Gates that are not made of keys are the same in all channels: scalar decay. Without a causal mask each "
    "query reads the end's state.",
    special_cases=(SpecialCase("scalar_decay", {"gate": "constant"}, {"gate": "constant"}, ("decay",)),),
)
